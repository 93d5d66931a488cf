"""``backup`` and ``restore``: the catalog as one file."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from shlex import quote
from typing import TYPE_CHECKING, Any

from drivefeed import bootstrap
from drivefeed.catalog import copying
from drivefeed.catalog.restoring import mark_restored
from drivefeed.cli.context import (
    daemon_client,
    existing_settings,
    run,
    settings_for_commands,
)
from drivefeed.cli.output import escape, print_json, say
from drivefeed.cli.words import size_of
from drivefeed.domain.errors import NeedsAttention, Part, PartDown
from drivefeed.domain.reasons import Reason
from drivefeed.services.sole_process import refuse_beside_others

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.settings import Settings


def back_up(file: Path, *, as_json: bool) -> None:
    """Copy the catalog into a file, or say how its database is copied."""
    settings = existing_settings()
    catalog = copying.sqlite_path(settings.catalog_url)
    if catalog is None:
        _tell_of_dump(file, as_json=as_json)
        return
    made = copying.back_up(catalog, file)
    if as_json:
        print_json({"file": str(made.path), "bytes": made.size, "schema": made.migration})
        return
    say(f"Wrote {escape(str(made.path))}, {size_of(made.size)}.")
    say("The secrets in it open only with the secret key; keep that somewhere else.")


def _tell_of_dump(file: Path, *, as_json: bool) -> None:
    """Print what copies a Postgres, with the URL where libpq finds it, not on the command line."""
    dump = f'pg_dump --format=custom --no-owner --file={quote(str(file))} "$DATABASE_URL"'
    put_back = (
        f'pg_restore --clean --if-exists --no-owner --dbname="$DATABASE_URL" {quote(str(file))}'
    )
    if as_json:
        print_json({"file": None, "backup": dump, "restore": put_back})
        return
    say("The catalog is in a database of its own, which copies itself while everything runs:")
    say(escape(dump), indent=2)
    say("To put it back, stop drivefeed everywhere, then:")
    say(escape(put_back), indent=2)
    say("drivefeed restore --done", indent=2)


def restore_from(file: Path | None, *, as_json: bool) -> None:
    """Put a backup in the catalog's place, or mark a database that was put back."""
    said = run(_restore(settings_for_commands(), file))
    if as_json:
        print_json(said)
        return
    if said["replaced"]:
        say(f"The former catalog is {escape(str(said['replaced']))}.")
    say(
        "Restored. At the next start the changes since the backup are read again, and store and "
        "index are made to agree with the catalog; 'drivefeed doctor' says when that is done."
    )


async def _restore(settings: Settings, file: Path | None) -> dict[str, Any]:
    around = bootstrap.Surroundings.real()
    epoch = around.ids.new()
    catalog = copying.sqlite_path(settings.catalog_url)
    async with AsyncExitStack() as stack:
        await _keep_daemons_off(settings, stack)
        if file is None:
            memory = await stack.enter_async_context(bootstrap.open_memory(settings, around))
            folder = bootstrap.folder_identity(settings)
            await refuse_beside_others(memory, folder=folder)
            await mark_restored(memory, epoch=epoch)
            return {"file": None, "replaced": None, "epoch": epoch}
        if catalog is None:
            raise NeedsAttention(
                "The catalog is in a database of its own. Put it back with its own means "
                "('drivefeed backup' prints the commands), then run 'drivefeed restore --done'.",
                reason=Reason.MISCONFIGURED,
            )
        await asyncio.to_thread(copying.examine_copy, file)
        now = around.clock.now()
        moment = datetime.fromtimestamp(now / 1000, tz=UTC).strftime("%Y%m%dT%H%M%SZ")
        replaced = await asyncio.to_thread(
            copying.put_in_place,
            file,
            catalog,
            epoch=epoch,
            now=now,
            suffix=f"replaced-{moment}",
        )
    return {
        "file": str(file),
        "replaced": None if replaced is None else str(replaced),
        "epoch": epoch,
    }


async def _keep_daemons_off(settings: Settings, stack: AsyncExitStack) -> None:
    """Keep daemons off the data folder until the stack is closed.

    Raises:
        PartDown: one runs.
    """
    from drivefeed.queue.embedded import alone_on

    bootstrap.make_data_dir(settings)
    async with daemon_client(settings) as client:
        if client is not None:
            raise PartDown(
                f"A daemon runs on '{settings.data_dir}'. Stop it, then restore.",
                part=Part.CATALOG,
            )
    stack.enter_context(alone_on(settings.data_dir / "queue"))
