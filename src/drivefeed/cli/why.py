"""``why``: the story of a file, told newest version first."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from drivefeed.catalog.passport import Passport, near_misses, passports
from drivefeed.cli.context import EXIT_NOT_CLEAN, existing_catalog, run
from drivefeed.cli.output import escape, on_terminal, print_json, say
from drivefeed.cli.words import (
    count_of,
    duration_of,
    instant_of,
    local_time,
    meaning_of,
    remedy_of,
    size_of,
)
from drivefeed.domain.story import told

if TYPE_CHECKING:
    from collections.abc import Iterator

_TONES = {"bad": "red", "doubtful": "dark_orange3"}


def tell_why(path: str, *, as_json: bool) -> None:
    """Tell the story of every file that the path names; exit code 1 if there is none."""
    found, near = run(_passports(path))
    if as_json:
        print_json([asdict(one) for one in found])
    elif not found:
        say(f"No file called '{escape(path)}' was ever listed.")
        if near:
            say("Did you mean one of these?")
        for each in near:
            say(escape(each), indent=2)
    for number, one in enumerate([] if as_json else found):
        if number:
            say()
        _tell(one)
    if not found:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _passports(path: str) -> tuple[list[Passport], list[str]]:
    async with existing_catalog() as catalog:
        found = await passports(catalog, path)
        return found, [] if found else await near_misses(catalog, path)


def _tell(one: Passport) -> None:
    say(f"[bold]{escape(one.path)}[/]")
    say(_summary(one), indent=2)
    for decision in one.coverage:
        say(_decided(decision), indent=2)
    if one.item.web_url:
        say(f"[dim]{escape(one.item.web_url)}[/]", indent=2)
    live = (one.document or {}).get("live_import_id")
    for number in range(len(one.versions), 0, -1):
        version = one.versions[number - 1]
        say()
        say(_headline(version, number, len(one.versions), is_live=version["id"] == live), indent=2)
        for line in _reasons(version):
            say(line, indent=4)
        for line in _steps(version["events"]):
            say(line, indent=4)
        for line in _facts(version):
            say(f"[dim]{line}[/]", indent=4)


def _summary(one: Passport) -> str:
    words = [size_of(one.item.size)] if one.item.size is not None else []
    if one.item.modified_at:
        words.append(f"modified {instant_of(one.item.modified_at)}")
    if one.item.deleted:
        words.append("[red]deleted at the source[/]")
    erase_at = (one.document or {}).get("erase_at")
    if erase_at:
        words.append(f"to be erased at {instant_of(erase_at)}")
    return " · ".join(words)


def _decided(decision: dict[str, Any]) -> str:
    code = str(decision["reason"])
    words = "admitted"
    if not decision["admitted"]:
        words = f"skipped ([bold]{code}[/]): {meaning_of(code)} [dim]→ {remedy_of(code)}[/]"
    if decision["leaving"]:
        words += f"; its removal ({decision['leaving']}) waits for a decision"
    return f"connection '{escape(str(decision['connection']))}': {words}"


def _headline(version: dict[str, Any], number: int, total: int, *, is_live: bool) -> str:
    stands = "[green]searchable[/]" if is_live else str(version["state"])
    words = [f"[bold]Version {number}[/] of {total}", stands]
    if version["indexed_percent"]:
        words.append(f"being indexed, {version['indexed_percent']} %")
    if version["round"] > 1:
        words.append(f"round {version['round']}")
    if version["settled_at"]:
        taken = (version["settled_at"] - version["created_at"]) / 1000
        words.append(f"indexed {duration_of(taken)} after it was seen")
    if version["charged"]:
        words.append(f"charged {count_of(version['charged']['pages'], 'page')}")
    return " · ".join(words)


def _reasons(version: dict[str, Any]) -> Iterator[str]:
    for code in dict.fromkeys((version["reason"], version["attention"], version["hold"])):
        if code:
            yield f"[bold]{code}[/]: {meaning_of(code)} [dim]→ {remedy_of(code)}[/]"
    if version["detail"]:
        yield f"[dim]{escape(version['detail'])}[/]"


def _steps(events: list[dict[str, Any]]) -> Iterator[str]:
    day, before, round_ = "", None, 1
    for event in events:
        at = local_time(event["at"])
        if (today := at.strftime("%Y-%m-%d")) != day:
            yield f"[dim]{today}[/]"
            day = today
        if event["round"] != round_:
            round_ = event["round"]
            yield f"[dim]round {round_}[/]"
        since = "" if before is None else f"+{duration_of((event['at'] - before) / 1000)}"
        before = event["at"]
        yield f"[dim]{at:%H:%M:%S} {since:>9}[/]  {_said(event)}"


def _said(event: dict[str, Any]) -> str:
    one = told(event)
    colour = _TONES.get(one.tone)
    return (f"[{colour}]{one.words}[/]" if colour else one.words) + escape(one.more)


def _facts(version: dict[str, Any]) -> Iterator[str]:
    if version["due"]:
        yield f"next: {version['due']['stage']}, due {instant_of(version['due']['due_at'])}"
    if version["sha256"]:
        size = size_of(version["size"]) if version["size"] is not None else "unknown size"
        yield f"object, {size}, {version['integrity'] or 'not verified'}: {version['object_key']}"
        yield f"sha256 {version['sha256']}"
    yield f"import {version['id']}, {escape(str(version['version_key']))}"
    if not on_terminal() and version["backend_job"]:
        yield f"backend job {version['backend_job']}"
