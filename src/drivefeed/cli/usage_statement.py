"""The statement of the ledger: as a table, as CSV and as JSON."""

from __future__ import annotations

import csv
import sys
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from drivefeed.catalog.control import matching_connections
from drivefeed.catalog.listing import org_named
from drivefeed.catalog.usage import Entry, Wanted, statement
from drivefeed.cli.context import existing_catalog
from drivefeed.cli.output import escape, new_table, print_json, say
from drivefeed.cli.words import count_of, instant_of
from drivefeed.domain.errors import NotFound

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

_NUMBERS = frozenset({"entry", "pages", "over"})
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which entries are asked for, as typed; instants in milliseconds since the epoch."""

    org: str | None
    connection: str | None
    document: str | None
    begin: int | None
    end: int | None


async def statement_of(choice: Choice) -> list[Entry]:
    """Return the entries that were asked for.

    Raises:
        NotFound: there is no such organization or connection.
    """
    async with existing_catalog() as catalog:
        org_id = await org_named(catalog, choice.org) if choice.org else None
        wanted = Wanted(
            org_id,
            await _connection(catalog, choice.connection, org_id),
            choice.document,
            choice.begin,
            choice.end,
        )
        return [one async for one in statement(catalog, wanted)]


async def _connection(catalog: Catalog, which: str | None, org_id: str | None) -> str | None:
    if which is None:
        return None
    found = [
        one.connection_id
        for one in await matching_connections(catalog, which)
        if org_id in {None, one.org_id}
    ]
    if len(found) > 1:
        raise NotFound(f"Several connections are called '{which}'; name it by its id, or --org.")
    if found:
        return found[0]
    # One that was removed is still known to the ledger, by its id.
    async for _ in statement(catalog, Wanted(org_id, which)):
        return which
    raise NotFound(f"There is no connection '{which}', and no entry of one that was removed.")


def print_statement(entries: list[Entry], *, as_csv: bool, as_json: bool) -> None:
    """Print entries in the order in which they were written."""
    if as_json:
        print_json([asdict(one) for one in entries])
    elif as_csv:
        _print_csv(entries)
    elif not entries:
        say("There is no entry.")
    else:
        _print_table(entries)


def _print_csv(entries: list[Entry]) -> None:
    """Print RFC 4180; times in UTC. Names never begin what a spreadsheet takes for a formula."""
    names = [field.name for field in fields(Entry)]
    out = csv.writer(sys.stdout, lineterminator="\r\n")
    out.writerow(names)
    for one in entries:
        values = asdict(one)
        values["at"] = datetime.fromtimestamp(one.at / 1000, tz=UTC).isoformat(
            timespec="milliseconds"
        )
        out.writerow(_harmless(values[name]) for name in names)
    sys.stdout.flush()


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _print_table(entries: list[Entry]) -> None:
    table = new_table(
        "entry", "when", "organization", "pages", "over", "connection", "what", right=_NUMBERS
    )
    for one in entries:
        what = one.document or ""
        if one.reason is not None:
            about = f" of entry {one.corrects}" if one.corrects is not None else ""
            what = f"correction{about}: {one.reason}"
        elif not one.counts:
            what += " (counted by the backend)"
        table.add_row(
            str(one.number),
            instant_of(one.at),
            escape(one.org),
            str(one.pages),
            str(one.overage or ""),
            escape(one.connection or one.connection_id or ""),
            escape(what),
        )
    say(table)
    counted = sum(one.pages for one in entries if one.counts)
    say(f"{count_of(counted, 'page')} in all.")
