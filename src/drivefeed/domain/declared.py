"""A file that declares connections: read whole, all its problems told at once, each with its line.

Python's reader of TOML tells no lines of values, so they are looked up in the text: good for files
as people write them, and never more than an aid to find the place.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain.names import name_problem
from drivefeed.domain.policies import as_written, read_policy
from drivefeed.domain.policy_options import BY_NAME, EMBEDDED
from drivefeed.domain.visible import visible

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_NAMING: Final = ("name", "account", "org")
_PLACE: Final = ("url", "site", "library", "drive_id", "folder")
_DEFAULTS: Final = frozenset({"account", "org", *BY_NAME})
_KNOWN: Final = frozenset({*_NAMING, *_PLACE, *BY_NAME})
_HEAD: Final = re.compile(r"\s*\[\[\s*connections\s*\]\]")
_TABLE: Final = re.compile(r"\s*\[")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; ``entry`` is the name or number of the entry, if it is in one."""

    line: int | None
    entry: str | None
    sentence: str

    def __str__(self) -> str:
        where = [f"line {self.line}"] if self.line is not None else []
        where += [f"entry {self.entry}"] if self.entry is not None else []
        return visible(f"{', '.join(where)}: {self.sentence}" if where else self.sentence)


@dataclass(frozen=True, slots=True)
class Entry:
    """One declared connection.

    Attributes:
        line: where it begins in the file.
        lines: where its values stand, by their keys; those that the file's defaults give, there.
        label: its name, or its number where it has none.
        url, site, library, drive_id, folder: its place, as it was written; a URL alone, or a site
            with a library, or a drive, each of these with a folder below.
        written: its options and the file's defaults, by option name; without those that are wrong.
        has_place: whether its place can be looked for.
        is_named: whether its name can be used, so that it can be compared with others.
    """

    line: int
    label: str
    name: str | None = None
    account: str | None = None
    org: str | None = None
    url: str | None = None
    site: str | None = None
    library: str | None = None
    drive_id: str | None = None
    folder: str = ""
    written: Mapping[str, Any] = field(default_factory=dict)
    has_place: bool = True
    is_named: bool = True
    lines: Mapping[str, int] = field(default_factory=dict)

    def problem(self, sentence: str, *keys: str) -> Problem:
        """Return a problem with this entry: in the line of the first key that has one."""
        lines = (self.lines[key] for key in keys if key in self.lines)
        return Problem(next(lines, self.line), self.label, sentence)


def read_declared(
    text: str, *, now: int, backends: Collection[str] = (EMBEDDED,)
) -> tuple[list[Entry], list[Problem]]:
    """Read a file of connections.

    Args:
        text: TOML: an optional table ``[defaults]``, and ``[[connections]]``.
        now: what ages are counted back from, in milliseconds since the epoch.
        backends: the ingestion backends that a policy may name.

    Returns:
        The entries whose place can be looked for, whatever else is wrong with them, and
        everything that is wrong.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return [], [Problem(None, None, f"It is no TOML: {error}.")]
    problems = [
        Problem(
            _line_of(text, name),
            None,
            f"There is no '{name}'; there are [defaults] and [[connections]].",
        )
        for name in found
        if name not in {"defaults", "connections"}
    ]
    defaults, wrong = _defaults(text, found.get("defaults", {}), now)
    problems += wrong
    tables = found.get("connections", [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        return [], [*problems, Problem(None, None, "connections must be tables: [[connections]].")]
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines, start=1) if _HEAD.match(line)]
    starts += [1] * (len(tables) - len(starts))
    given = {key: at for key in defaults if (at := _line_of(text, key)) is not None}
    entries: list[Entry] = []
    for number, (table, line) in enumerate(zip(tables, starts, strict=False), start=1):
        entry, wrong = _entry(lines, number, line, {**defaults, **table}, own=set(table), now=now)
        entry = replace(entry, lines={**given, **entry.lines})
        name = entry.written.get("backend", EMBEDDED)
        if name not in backends:
            sentence = f"backend is '{name}'; allowed: {', '.join(backends)}."
            wrong.append(entry.problem(sentence, "backend"))
        problems += wrong
        entries.append(entry)
    entries, wrong = _named_once(entries)
    return [one for one in entries if one.has_place], problems + wrong


def _defaults(text: str, table: Any, now: int) -> tuple[dict[str, Any], list[Problem]]:
    if not isinstance(table, dict):
        return {}, [Problem(_line_of(text, "defaults"), None, "defaults must be a table.")]
    known = {name: value for name, value in table.items() if name in _DEFAULTS}
    strange = ", ".join(sorted(set(table) - _DEFAULTS))
    problems = []
    if strange:
        sentence = f"[defaults] cannot have {strange}; allowed: account, org, {', '.join(BY_NAME)}."
        problems.append(Problem(_line_of(text, strange.split(",")[0]), None, sentence))
    _, wrong = read_policy({key: known[key] for key in known if key in BY_NAME}, now=now)
    problems += [Problem(_line_of(text, key), None, f"[defaults] {wrong[key]}") for key in wrong]
    # What is wrong there is told once, not again for each entry.
    return {key: value for key, value in known.items() if key not in wrong}, problems


def _entry(
    lines: list[str], number: int, line: int, table: dict[str, Any], *, own: set[str], now: int
) -> tuple[Entry, list[Problem]]:
    name = table.get("name")
    label = f"'{name}'" if isinstance(name, str) and name else f"number {number}"
    problems: list[Problem] = []

    def wrong(key: str, sentence: str) -> None:
        problems.append(Problem(_line_within(lines, line, key), label, sentence))

    for key in sorted(own - _KNOWN):
        wrong(key, f"There is no '{key}'; there are {', '.join((*_NAMING, *_PLACE, *BY_NAME))}.")
    texts: dict[str, str] = {}
    odd: set[str] = set()
    for key in (*_NAMING, *_PLACE):
        value = table.get(key)
        if value is None:
            continue
        if isinstance(value, str) and (value.strip() or key == "folder"):
            texts[key] = value.strip()
        else:
            odd.add(key)
            wrong(key, f"{key} is {as_written(value)}; allowed: a text with characters.")
    sentence = name_problem(texts["name"]) if "name" in texts else None
    if sentence:
        odd.add("name")
        wrong("name", sentence)
    misplaced = None if odd & {*_PLACE} else _place_problem(texts)
    if misplaced:
        wrong("", misplaced)
    written = {key: value for key, value in table.items() if key in BY_NAME}
    refused = read_policy(written, now=now)[1]
    for key, sentence in refused.items():
        wrong(key, sentence)
    written = {key: value for key, value in written.items() if key not in refused}
    if read_policy(written, now=now)[1]:
        written = {}
    entry = Entry(
        line,
        label,
        written=written,
        has_place=not misplaced and not odd - {"name"},
        is_named="name" not in odd,
        lines={key: _line_within(lines, line, key) for key in own},
        **{"folder": "", **texts},
    )
    return entry, problems


def _place_problem(texts: Mapping[str, str]) -> str | None:
    given = [key for key in ("url", "site", "drive_id") if key in texts]
    if len(given) != 1:
        said = " and ".join(given) if given else "none of them"
        return f"It says {said}; allowed: exactly one of url, site and drive_id."
    if "url" in texts and texts.get("folder"):
        return "It says url and folder; allowed: a url alone, which names the folder by itself."
    if ("site" in texts) != ("library" in texts):
        return "It says site or library alone; allowed: both, and a folder below."
    return None


def _named_once(entries: list[Entry]) -> tuple[list[Entry], list[Problem]]:
    """Mark entries whose name an earlier one has."""
    seen: dict[str, Entry] = {}
    found: list[Entry] = []
    problems = []
    for one in entries:
        first = one if one.name is None else seen.setdefault(one.name.casefold(), one)
        if first is not one:
            sentence = f"The name is that of the entry in line {first.line} as well."
            problems.append(one.problem(sentence, "name"))
        found.append(one if first is one else replace(one, is_named=False))
    return found, problems


def _line_within(lines: list[str], start: int, key: str) -> int:
    """Return the line of a key in the entry that begins at ``start``, or that line."""
    for number in range(start, len(lines)):
        if _HEAD.match(lines[number]):
            break
        if key and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", lines[number]):
            return number + 1
    return start


def _line_of(text: str, key: str) -> int | None:
    """Return the first line that sets a key, or that opens a table of that name."""
    pattern = rf"\s*(?:\[+\s*)?[\"']?{re.escape(key)}[\"']?\s*[\]=.]"
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(pattern, line):
            return number
    return None
