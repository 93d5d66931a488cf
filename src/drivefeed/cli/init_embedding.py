"""The embedding of a new installation: asked for, tried at once, and written to the settings."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import typer
from pydantic import SecretStr

from drivefeed.catalog.collections import collections_of
from drivefeed.cli.context import SETTINGS_NAME, settings_file
from drivefeed.cli.embedding_way import check_fields, read_key, try_embedder, typed_as
from drivefeed.cli.output import on_terminal, say
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.embedding import index_name, made_by, open_asked
from drivefeed.indexer.providers import HERE, LOCAL, PROVIDERS

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.catalog.engine import Catalog
    from drivefeed.setting_sections import EmbeddingSettings
    from drivefeed.settings import Settings

_OPTIONS: Final = typed_as(
    {
        "provider": "--embedding",
        "model": "--embedding-model",
        "base_url": "--embedding-url",
        "dimension": "--embedding-dimension",
        "api_key": "--embedding-key-file or --embedding-key-stdin",
    }
)
_PRIVATE: Final = 0o600


@dataclass(frozen=True, slots=True)
class EmbeddingAsked:
    """What was typed: fields by their names in the settings, those alone that were given."""

    fields: dict[str, Any] = field(default_factory=dict)
    key_file: Path | None = None
    key_stdin: bool = False

    @property
    def is_given(self) -> bool:
        """Whether anything was said of an embedding."""
        return bool(self.fields or self.key_file or self.key_stdin)


def may_ask(settings: Settings, asked: EmbeddingAsked, *, as_json: bool) -> bool:
    """Whether somebody is there to be asked, and said nothing yet, here or in the settings."""
    is_open = not asked.is_given and settings.embedding == type(settings.embedding)()
    return is_open and not as_json and on_terminal() and sys.stdin.isatty()


def ask_for_embedding() -> EmbeddingAsked:
    """Ask what embeds the documents; the default is the model of this machine for English."""
    say("What embeds the documents, for search by meaning?")
    say("local         on this machine, English", indent=2)
    say("multilingual  on this machine, 16 languages", indent=2)
    say("openai        a service with OpenAI's API; it gets the text of every document", indent=2)
    say("ollama        an Ollama server; it gets the text of every document", indent=2)
    provider = ""
    while provider not in PROVIDERS:
        provider = typer.prompt("Embedding", default=LOCAL).strip()
    fields: dict[str, Any] = {"provider": provider}
    if provider in HERE:
        return EmbeddingAsked(fields)
    fields["model"] = typer.prompt("Model").strip()
    url = typer.prompt("Address (empty for the usual one)", default="", show_default=False).strip()
    if url:
        fields["base_url"] = url
    return EmbeddingAsked(fields, key_stdin=typer.confirm("Does it want a key?", default=False))


def wish_of(asked: EmbeddingAsked, settings: Settings) -> EmbeddingSettings | None:
    """Return the embedding that was asked for; None where nothing was.

    Raises:
        typer.BadParameter: it cannot be; the sentence names the option.
    """
    if not asked.is_given:
        return None
    if "provider" not in asked.fields:
        raise typer.BadParameter("Name a provider with --embedding.")
    if asked.key_file and asked.key_stdin:
        raise typer.BadParameter("Say only one of --embedding-key-file and --embedding-key-stdin.")
    check_fields(asked.fields, _OPTIONS)
    provider, has_key = asked.fields["provider"], bool(asked.key_file or asked.key_stdin)
    if provider in HERE and (len(asked.fields) > 1 or has_key):
        raise typer.BadParameter(
            f"--embedding {provider} runs on this machine, and takes no model, address, dimension "
            "or key."
        )
    if provider not in HERE and not asked.fields.get("model"):
        raise typer.BadParameter(f"Name the model of {provider} with --embedding-model.")
    key = read_key(asked.key_file, stdin=asked.key_stdin)
    if key is None and provider == settings.embedding.provider:
        # It may come from the environment, where it is better off.
        return type(settings.embedding)(**asked.fields, api_key=settings.embedding.api_key)
    secret = SecretStr(key) if key is not None else None
    return type(settings.embedding)(**asked.fields, api_key=secret)


def words_of(one: EmbeddingSettings) -> str:
    """Return an embedding in a word or two."""
    return f"{one.provider}, {one.model}" if one.model else one.provider


async def try_wish(settings: Settings, catalog: Catalog, wish: EmbeddingSettings) -> bool:
    """Have it embed a word; tell whether an index is there that was made with another model.

    Raises:
        PartDown, NeedsAttention, Throttled, Transient: with a sentence that says what is wrong.
    """
    embedder = open_asked(settings, catalog, wish, _OPTIONS)
    made = made_by("", embedder)
    await try_embedder(embedder)
    active = (await collections_of(catalog, index_name(settings))).active
    return active is not None and active.embedding != made.embedding


def write_embedding(settings: Settings, wish: EmbeddingSettings) -> Path | None:
    """Write the table ``[embedding]``; None where the settings ask for the same already.

    Raises:
        NeedsAttention: the settings ask for another one, which is a person's to change, or the
            file cannot be written.
    """
    if settings.embedding == wish:
        return None
    named = settings_file()
    path = named or settings.data_dir / SETTINGS_NAME
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    is_chosen = "embedding" in tomllib.loads(before) or settings.embedding.model_dump(
        exclude={"api_key"}
    ) != type(wish)().model_dump(exclude={"api_key"})
    if is_chosen:
        where = f"'{named}' or the environment" if named else "the environment"
        raise NeedsAttention(
            f"The settings name an embedding already ({words_of(settings.embedding)}, in {where}). "
            "Change it there, and then run 'drivefeed reindex' if something is indexed.",
            reason=Reason.MISCONFIGURED,
        )
    try:
        _write(path, before, _table(wish, settings))
    except OSError as error:
        raise NeedsAttention(
            f"The settings file '{path}' cannot be written ({error.strerror}). Make it writable, "
            "or write the embedding into it yourself.",
            reason=Reason.MISCONFIGURED,
        ) from error
    return path


def _table(wish: EmbeddingSettings, settings: Settings) -> str:
    values: dict[str, Any] = wish.model_dump(exclude={"api_key"}, exclude_defaults=True)
    values = {"provider": wish.provider, **values}
    if wish.api_key is not None and wish.api_key != settings.embedding.api_key:
        values["api_key"] = wish.api_key.get_secret_value()
    # The JSON forms of strings and numbers are TOML as well.
    return "\n".join(
        [
            "[embedding]",
            *(f"{key} = {json.dumps(one, ensure_ascii=False)}" for key, one in values.items()),
        ]
    )


def _write(path: Path, before: str, table: str) -> None:
    """Add a table to the end of a file, whole or not at all.

    A new file, and one that gets a key, is readable by its owner alone.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path = path.resolve()
    beside = path.with_name(f".{path.name}.new")
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        out.write(f"{before.rstrip()}\n\n{table}\n".lstrip())
        out.flush()
        os.fsync(out.fileno())
        if path.exists() and "api_key" not in table:
            os.fchmod(out.fileno(), stat.S_IMODE(path.stat().st_mode))
    beside.replace(path)
