"""Commands that change what happens: retry, pause, resume, removals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from drivefeed.catalog.control import matching_connections, retry_imports, set_paused
from drivefeed.catalog.leaving import approve_removals, count_leaving, discard_removals
from drivefeed.catalog.listing import list_files
from drivefeed.catalog.progress import Standing
from drivefeed.cli.context import EXIT_NOT_CLEAN, console, existing_parts, print_json, run
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.domain.model import Connection

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Which = Annotated[str | None, typer.Argument(help="Name or id of a connection; all without.")]


def retry(
    path: Annotated[str | None, typer.Argument(help="A file; all that failed without.")] = None,
    reason: Annotated[str | None, typer.Option(help="Only files with this reason.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Try files again that failed or wait for a person."""
    paths = run(_retry(path, reason))
    if as_json:
        print_json({"retried": paths})
    elif paths:
        console.print(f"Trying again: {', '.join(paths)}")
    else:
        console.print("Nothing to try again.")
    if path is not None and not paths:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _retry(path: str | None, reason: str | None) -> list[str]:
    async with existing_parts() as parts:
        failed = [
            one
            for one in await list_files(parts.catalog, reason=reason)
            if one.standing in {Standing.FAILED, Standing.HELD} and one.import_id
        ]
        if path is not None:
            wanted = f"/{path.strip('/')}".casefold()
            failed = [one for one in failed if f"/{one.path}".casefold().endswith(wanted)]
        await retry_imports(parts.catalog, [str(one.import_id) for one in failed])
    return [one.path for one in failed]


def pause(which: Which = None, *, as_json: Json = False) -> None:
    """Stop connections from taking anything new; what runs is finished."""
    _say(run(_pause(which, paused=True)), "Paused", as_json=as_json)


def resume(which: Which = None, *, as_json: Json = False) -> None:
    """Let connections flow again."""
    _say(run(_pause(which, paused=False)), "Resumed", as_json=as_json)


async def _pause(which: str | None, *, paused: bool) -> list[Connection]:
    async with existing_parts() as parts:
        found = await matching_connections(parts.catalog, which)
        for one in found:
            await set_paused(parts.catalog, one, paused=paused)
    return found


def _say(found: list[Connection], what: str, *, as_json: bool) -> None:
    names = [one.name for one in found]
    if as_json:
        print_json({what.lower(): names})
    else:
        console.print(f"{what}: {', '.join(names)}" if names else "No connection matches.")
    if not names:
        raise typer.Exit(EXIT_NOT_CLEAN)


def removals(
    which: Which = None,
    *,
    approve: Annotated[bool, typer.Option("--approve", help="Remove them.")] = False,
    discard: Annotated[bool, typer.Option("--discard", help="Keep them.")] = False,
    as_json: Json = False,
) -> None:
    """Show removals that wait for a decision; approve or discard them."""
    if approve and discard:
        raise typer.BadParameter("Say either --approve or --discard.")
    answer = run(_removals(which, approve=approve, discard=discard))
    if as_json:
        print_json(answer)
        return
    for name, count in answer.items():
        verb = "removed" if approve else "kept" if discard else "waiting for your decision"
        console.print(f"{name}: {count} documents {verb}.")
    if not answer:
        console.print("No removals wait for a decision.")


async def _removals(which: str | None, *, approve: bool, discard: bool) -> dict[str, int]:
    answer: dict[str, int] = {}
    async with existing_parts() as parts:
        for one in await matching_connections(parts.catalog, which):
            if one.attention is not Reason.MASS_REMOVAL:
                continue
            if approve:
                answer[one.name] = await approve_removals(parts.catalog, one.connection_id)
            elif discard:
                answer[one.name] = await discard_removals(parts.catalog, one.connection_id)
            else:
                async with parts.catalog.read() as connection:
                    answer[one.name], _ = await count_leaving(connection, one.connection_id)
    return answer
