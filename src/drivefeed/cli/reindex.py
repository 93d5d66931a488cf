"""``reindex``: another embedding model, while search goes on.

While a daemon runs it builds, because the embedded index belongs to it, and the command looks on.
Without one the command builds by itself, and keeps daemons off the data folder meanwhile.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import typer

from drivefeed.cli.context import (
    EXIT_NOT_CLEAN,
    answer_of,
    daemon_client,
    existing_settings,
    refuse_parts_of_others,
    run,
)
from drivefeed.cli.output import console, escape, on_terminal, print_json, say
from drivefeed.cli.words import count_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    import httpx

    from drivefeed.catalog.engine import Catalog
    from drivefeed.settings import Settings

    State = dict[str, Any]
    Look = Callable[[], Awaitable[State]]

_LOOK_SECONDS: Final = 0.5
_ADDRESS: Final = "/v1/index/reindex"


def reindex_all(
    to: str | None,
    org: str | None = None,
    *,
    leave_out: bool,
    anew: bool,
    look: bool,
    cancel: bool,
    as_json: bool,
) -> None:
    """Build, look or stop; exit code 1 if it ended without a swap, or files were left out."""
    if to and org:
        raise typer.BadParameter(
            "An organization's embedding is chosen with 'drivefeed org embedding'; --to is for the "
            "installation's."
        )
    wish: dict[str, Any] = {"leave_out": leave_out, "anew": anew}
    wish |= {key: value for key, value in (("to", to), ("org", org)) if value}
    state = run(_reindex(wish, look=look, cancel=cancel, quiet=as_json))
    if as_json:
        print_json(state)
    else:
        _tell(state, done=not look and not cancel)
        if to and state["state"] == "idle":
            say(
                "[dim]Name it as \\[embedding] in the settings too: that is what a 'drivefeed "
                "reindex' without --to changes to.[/]"
            )
    if state["failed"] and not look:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _reindex(wish: dict[str, Any], *, look: bool, cancel: bool, quiet: bool) -> State:
    settings = existing_settings()
    async with daemon_client(settings) as client:
        if client is not None:
            return await _through(client, wish, look=look, cancel=cancel, quiet=quiet)
    return await _here(settings, wish, look=look, cancel=cancel, quiet=quiet)


async def _through(
    client: httpx.AsyncClient, wish: dict[str, Any], *, look: bool, cancel: bool, quiet: bool
) -> State:
    whose = {"org": wish["org"]} if "org" in wish else {}

    async def state() -> State:
        found: State = answer_of(await client.get(_ADDRESS, params=whose))
        return found

    if look:
        return await state()
    if cancel:
        stopped: State = answer_of(await client.delete(_ADDRESS, params=whose))
        return stopped
    answer_of(await client.post(_ADDRESS, params=wish))
    with _bar(quiet=quiet) as show:
        while (found := await state())["state"] == "building":
            show(found)
            await asyncio.sleep(_LOOK_SECONDS)
    return found


async def _here(
    settings: Settings, wish: dict[str, Any], *, look: bool, cancel: bool, quiet: bool
) -> State:
    from drivefeed.assembly import open_indexing, open_reindexing, open_turns
    from drivefeed.bootstrap import open_memory, open_parts
    from drivefeed.catalog.collection_rows import ALL
    from drivefeed.catalog.collections import give_up_building
    from drivefeed.catalog.listing import org_named
    from drivefeed.embedding import index_name
    from drivefeed.queue.embedded import alone_on
    from drivefeed.telemetry import configure_logs

    configure_logs(json=settings.log_json, level="warning")
    org_id = ALL
    async with AsyncExitStack() as stack:
        if not look:
            stack.enter_context(alone_on(settings.data_dir / "queue"))
        async with open_memory(settings) as catalog:
            if "org" in wish:
                org_id = await org_named(catalog, wish["org"])
            if cancel:
                # Before it is opened: its model may be gone from the settings.
                async with _turn_at(settings, catalog):
                    await give_up_building(catalog, index_name(settings), org_id)
        parts = await stack.enter_async_context(open_parts(settings))
        await refuse_parts_of_others(parts)
        turns = None if look else open_turns(parts, f"reindex {parts.catalog.ids.new()}")
        if turns is not None:
            await stack.enter_async_context(turns.opened())
        reindexing = open_reindexing(parts, await open_indexing(parts, stack), turns)

        async def state() -> State:
            return (await reindexing.state(org_id=org_id)).as_dict()

        if look:
            return await state()
        if cancel:
            await reindexing.work(org_id=org_id)
            return await state()
        await reindexing.start(
            wish.get("to"), org_id=org_id, leave_out=wish["leave_out"], anew=wish["anew"]
        )
        async with _watched(state, quiet=quiet):
            await reindexing.work(org_id=org_id)
        return await state()


def _turn_at(settings: Settings, catalog: Catalog) -> AbstractAsyncContextManager[None]:
    from drivefeed.embedding import index_name
    from drivefeed.services.index_turns import IndexTurns

    if not settings.qdrant_url:
        return nullcontext()
    owner = f"reindex {catalog.ids.new()}"
    return IndexTurns(catalog, None, index=index_name(settings), owner=owner).alone()


@asynccontextmanager
async def _watched(look: Look, *, quiet: bool) -> AsyncIterator[None]:
    """Show progress of what runs in the block."""
    with _bar(quiet=quiet) as show:

        async def watch() -> None:
            while True:
                show(await look())
                await asyncio.sleep(_LOOK_SECONDS)

        watching = asyncio.create_task(watch(), name="reindex progress")
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


def _bar(*, quiet: bool) -> AbstractContextManager[Callable[[State], None]]:
    if quiet or not on_terminal():
        return nullcontext(lambda _: None)
    return _Bar()


class _Bar:
    """A progress bar on a terminal, with what keeps the work from going on below it."""

    def __enter__(self) -> Callable[[State], None]:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
        from rich.progress import TimeRemainingColumn as TimeLeft

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeLeft(),
            console=console(),
            transient=True,
        )
        self._task = self._progress.add_task("Reindexing", total=None)
        self._said = ""
        self._progress.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def _show(self, state: State) -> None:
        self._progress.update(
            self._task, total=state["total"], completed=state["done"] + state["failed"]
        )
        if state["trouble"] and state["trouble"] != self._said:
            self._said = state["trouble"]
            self._progress.console.print(f"[yellow]{escape(self._said)}[/] It is tried again.")


def _tell(state: State, *, done: bool) -> None:
    if state["state"] == "idle":
        say(f"Search uses {escape(state['active'])}.")
        return
    counted = f"{state['done']} of {count_of(state['total'], 'file')}"
    say(f"Search uses {escape(state['active'])}.")
    say(f"{escape(state['building'])} is built beside it: {counted}.")
    if state["trouble"]:
        say(f"[yellow]{escape(state['trouble'])}[/]")
    if state["failed"]:
        say(f"[red]{count_of(state['failed'], 'file')} could not be read again:[/]")
        for words in state["unreadable"]:
            say(escape(words), indent=2)
    if done and state["failed"]:
        say(
            "[dim]Search goes on as before. 'drivefeed reindex' tries them again; with --leave-out "
            "it swaps without them.[/]"
        )
