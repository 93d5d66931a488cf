"""Commands that change what happens: retry, pause, resume, removals.

They write to the catalog; a running daemon takes it from there within a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from drivefeed.catalog.control import (
    matching_connections,
    retry_drives,
    retry_imports,
    set_paused,
)
from drivefeed.catalog.leaving import approve_removals, count_leaving, discard_removals
from drivefeed.catalog.listing import list_files
from drivefeed.catalog.progress import Standing
from drivefeed.cli.asking import say_files
from drivefeed.cli.context import (
    EXIT_NOT_CLEAN,
    door_of,
    existing_catalog,
    existing_settings,
    os_user,
    run,
)
from drivefeed.cli.output import escape, print_json, say
from drivefeed.cli.words import count_of
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.domain.model import Connection


def retry_failed(which: str | None, reason: str | None, *, as_json: bool) -> None:
    """Try files and drives again; exit code 1 if one was named and none of that name failed."""
    if reason is not None and reason not in set(Reason):
        raise typer.BadParameter(f"There is no reason '{reason}'; docs/reasons.md lists them.")
    paths, names = run(_retry(which, reason))
    if as_json:
        print_json({"retried": paths, "connections": names})
    if paths and not as_json:
        say_files(paths, f"will be tried again{_when()}")
    if names and not as_json:
        say(f"Microsoft will be asked again{_when()}: {escape(', '.join(names))}")
    if paths or names:
        return
    if not as_json:
        say("Nothing to try again.")
    if which is not None:
        raise typer.Exit(EXIT_NOT_CLEAN)


def _when() -> str:
    return "" if door_of(existing_settings()) else " once a daemon runs"


async def _retry(which: str | None, reason: str | None) -> tuple[list[str], list[str]]:
    async with existing_catalog() as catalog:
        failed = [
            one
            for one in await list_files(catalog, reason=reason)
            if one.standing in {Standing.FAILED, Standing.HELD} and one.import_id
        ]
        if which is not None:
            wanted = f"/{which.strip('/')}".casefold()
            failed = [one for one in failed if f"/{one.path}".casefold().endswith(wanted)]
        await retry_imports(catalog, [str(one.import_id) for one in failed])
        waiting = await retry_drives(catalog, which, reason=reason)
    return [one.path for one in failed], [one.name for one in waiting]


def pause_connections(which: str | None, *, paused: bool, as_json: bool) -> None:
    """Pause or resume connections; exit code 1 if none matches."""
    what = "Paused" if paused else "Resumed"
    names = [one.name for one in run(_pause(which, paused=paused))]
    if as_json:
        print_json({what.lower(): names})
    elif names:
        say(f"{what}: {escape(', '.join(names))}")
    else:
        say("No connection matches.")
    if not names:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _pause(which: str | None, *, paused: bool) -> list[Connection]:
    async with existing_catalog() as catalog:
        found = await matching_connections(catalog, which)
        flowing = [one for one in found if not one.disconnected]
        if which is not None and found and not flowing:
            raise was_disconnected(found[0])
        for one in flowing:
            await set_paused(catalog, one, paused=paused, actor=os_user())
    return flowing


def was_disconnected(one: Connection) -> NeedsAttention:
    """Return the refusal to change a connection that was stopped for good."""
    return NeedsAttention(
        f"'{one.name}' was disconnected and follows its folder no more. Connect the folder again: "
        "'drivefeed connect'.",
        reason=Reason.MISCONFIGURED,
    )


def decide_removals(which: str | None, *, approve: bool, discard: bool, as_json: bool) -> None:
    """Show, approve or discard removals; exit code 1 if a connection was named and none matches."""
    matched, answer = run(_removals(which, approve=approve, discard=discard))
    if as_json:
        print_json(answer)
    elif not matched and which is not None:
        say("No connection matches.")
    elif not answer:
        say("No removals wait for a decision.")
    else:
        verb = "removed" if approve else "kept" if discard else "waiting for your decision"
        for name, count in answer.items():
            say(f"{escape(name)}: {count_of(count, 'document')} {verb}.")
        if not approve and not discard:
            say("[dim]Look at the source, then say --approve to remove or --discard to keep.[/]")
    if not matched and which is not None:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _removals(
    which: str | None, *, approve: bool, discard: bool
) -> tuple[bool, dict[str, int]]:
    answer: dict[str, int] = {}
    async with existing_catalog() as catalog:
        matched = await matching_connections(catalog, which)
        for one in matched:
            if one.attention is not Reason.MASS_REMOVAL:
                continue
            if approve:
                answer[one.name] = await approve_removals(catalog, one.connection_id)
            elif discard:
                answer[one.name] = await discard_removals(catalog, one.connection_id)
            else:
                async with catalog.read() as connection:
                    answer[one.name] = await count_leaving(connection, one.connection_id)
    return bool(matched), answer
