"""What the doctor finds in the settings: values that contradict each other, and open doors."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from drivefeed.services.checkups.finding import Finding, green, red, yellow
from drivefeed.setting_secrets import secrets_in
from drivefeed.settings import CONFIG_VARIABLE, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

PART = "settings"
_PREFIX = "DRIVEFEED_"
_OTHERS_READ = 0o044
_OTHERS = 0o077
_NO_SETTINGS = frozenset({CONFIG_VARIABLE, "DRIVEFEED_API_KEY"})
"""Variables with our prefix that commands read themselves."""


def settings_findings(
    settings: Settings, config: Path | None, environ: Mapping[str, str] | None = None
) -> list[Finding]:
    """Look at settings that could be read.

    Args:
        settings: what was read.
        config: the file that it was read from, if there is one.
        environ: where variables are looked for; the process's own by default.
    """
    environ = os.environ if environ is None else environ
    found = [
        *_unknown_variables(environ),
        *_contradictions(settings),
        *_open_files(settings, config),
    ]
    if found:
        return found
    where = f"'{config}' and the environment" if config else "the environment and defaults"
    return [green(PART, f"Read from {where}; nothing contradicts itself.")]


def _unknown_variables(environ: Mapping[str, str]) -> Iterator[Finding]:
    known = {f"{_PREFIX}{name}".upper() for name in Settings.model_fields}
    for name in sorted(environ):
        first = name.upper().split("__", 1)[0]
        if first.startswith(_PREFIX) and first not in known | _NO_SETTINGS:
            words = f"The environment has {name}, and there is no such setting."
            yield yellow(
                PART, words, f"Correct its name, or unset it: 'unset {name}'.", subject=name
            )


def _contradictions(settings: Settings) -> Iterator[Finding]:
    names = Counter((one.org, one.name) for one in settings.accounts)
    for (_, name), count in names.items():
        if count > 1:
            words = f"{count} accounts are called '{name}', and only one of them can be used."
            yield red(PART, words, "Give each [[accounts]] its own name.", subject=name)
    folders = Counter((one.drive_id, one.folder.strip("/")) for one in settings.connections)
    for (drive_id, folder), count in folders.items():
        if count > 1:
            where = f"folder '{folder}'" if folder else "all"
            words = f"{count} connections name {where} of drive '{drive_id}'."
            remedy = "Leave one [[connections]] of them; the last one wins now."
            yield yellow(PART, words, remedy, subject=drive_id)
    if settings.s3 is not None and (settings.s3.access_key is None) != (
        settings.s3.secret_key is None
    ):
        words = "Of S3's access_key and secret_key only one is set."
        yield red(PART, words, "Set both, or neither to use the machine's own.", subject="s3")
    if settings.qdrant_api_key is not None and not settings.qdrant_url:
        words = "qdrant_api_key is set, and qdrant_url is not, so the embedded index is used."
        yield yellow(PART, words, "Set qdrant_url too, or unset the key.", subject="qdrant_url")
    if settings.qdrant_api_key is not None and settings.qdrant_url.startswith("http://"):
        yield from _key_in_the_clear(settings.qdrant_url)
    ours = [
        one
        for one in ("secret_key", "secret_key_file", "secret_key_command")
        if _set(settings, one)
    ]
    if len(ours) > 1:
        words = f"{' and '.join(ours)} are set; only {ours[0]} is used."
        yield yellow(PART, words, "Leave one of them.", subject=ours[0])


def _key_in_the_clear(url: str) -> Iterator[Finding]:
    host = url.removeprefix("http://").split("/", 1)[0].rsplit(":", 1)[0]
    if host not in {"localhost", "127.0.0.1", "[::1]"}:
        words = f"qdrant_api_key travels to {host} without encryption."
        yield yellow(PART, words, "Use https in qdrant_url.", subject="qdrant_url")


def _set(settings: Settings, name: str) -> bool:
    return bool(getattr(settings, name, None))


def _open_files(settings: Settings, config: Path | None) -> Iterator[Finding]:
    if config is not None and config.is_file() and _holds_secrets(config, settings):
        mode = config.stat().st_mode
        if mode & _OTHERS_READ:
            words = f"'{config}' holds secrets, and others than its owner can read it."
            yield red(PART, words, f"Run 'chmod 600 {config}'.", subject=str(config))
    folder = settings.data_dir
    if folder.is_dir() and folder.stat().st_mode & _OTHERS:
        words = f"The data folder '{folder}' is open to others than its owner."
        yield yellow(PART, words, f"Run 'chmod 700 {folder}'.", subject=str(folder))


def _holds_secrets(config: Path, settings: Settings) -> bool:
    text = config.read_text(encoding="utf-8", errors="replace")
    return any(one and one in text for one in secrets_in(settings))
