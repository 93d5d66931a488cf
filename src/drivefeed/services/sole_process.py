"""Nobody works on a catalog beside a process that takes it for its own."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from drivefeed.catalog import sole_process
from drivefeed.catalog.parts_down import DEAD_AFTER_MS
from drivefeed.domain.errors import Part, PartDown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sole_process import Process, Standing

_LOOK_SECONDS: Final = 0.5
_WOULD_BE_TAKEN: Final = "this one would take what it does for its own"
_OTHER_FOLDER: Final = "its objects or its index are in another data folder than this one"
_MANY: Final = (
    "Stop it first. Many processes on one database need a Redis, an S3 bucket and a Qdrant server "
    "that all of them reach: see 'Many processes' in docs/operations.md."
)


async def take_catalog(catalog: Catalog, owner: str, role: str, *, folder: str | None) -> int:
    """Begin as the only process of a catalog; return how many interrupted rows are due again.

    A process that was killed a moment ago still counts as alive. One with the same data folder is
    known to be dead, because its lock is ours; for others it is seen within eight seconds.

    Args:
        folder: the identity of the data folder; None where the catalog lies in it.

    Raises:
        PartDown: another process works on the catalog.
    """
    dead: frozenset[str] = frozenset()
    if folder is not None:
        standing = await sole_process.standing(catalog)
        await _see_dead(catalog, _suspects(standing, folder), _WOULD_BE_TAKEN)
        dead = frozenset(standing.alive)
    taken = await sole_process.take(catalog, owner, role, folder=folder, dead=dead)
    if taken.rival is not None:
        raise _occupied(taken.rival, _WOULD_BE_TAKEN)
    return taken.freed


async def share_catalog(catalog: Catalog) -> None:
    """Begin as one of many processes of a catalog.

    Raises:
        PartDown: it belongs to one process with parts of its own, and that is alive.
    """
    standing = await sole_process.standing(catalog)
    await _see_dead(catalog, standing.sole, "it has parts in a data folder that this one lacks")


async def refuse_beside_others(catalog: Catalog, *, folder: str | None) -> None:
    """Do nothing unless a process works on a catalog that a command would change as a whole.

    Args:
        folder: as in :func:`take_catalog`; its lock is ours.

    Raises:
        PartDown: one does.
    """
    if folder is not None:
        suspects = _suspects(await sole_process.standing(catalog), folder)
        await _see_dead(catalog, suspects, "it would go on with what it remembers")


async def refuse_in_another_folder(catalog: Catalog, *, folder: str | None) -> None:
    """Do nothing unless a process works on a catalog with parts that this data folder lacks.

    For commands that compare or change store and index.

    Raises:
        PartDown: one does.
    """
    if folder is None:
        return
    standing = await sole_process.standing(catalog)
    if standing.folder not in {None, folder}:
        await _see_dead(
            catalog, standing.sole, _OTHER_FOLDER, remedy="Name that folder with --data."
        )


def _suspects(standing: Standing, folder: str) -> dict[str, Process]:
    """Return who may be alive, with the lock of our folder in our hands."""
    known_dead = standing.owner if standing.folder == folder else None
    return {name: one for name, one in standing.alive.items() if name != known_dead}


async def _see_dead(
    catalog: Catalog, suspects: Mapping[str, Process], why: str, *, remedy: str = _MANY
) -> None:
    """Watch until nobody of the suspects can be alive.

    Raises:
        PartDown: one said again that it is.
    """
    latest = time.monotonic() + DEAD_AFTER_MS / 1000 + 1.0
    while suspects and time.monotonic() < latest:
        await asyncio.sleep(_LOOK_SECONDS)
        alive = (await sole_process.standing(catalog)).alive
        for owner, one in suspects.items():
            if owner in alive and alive[owner].seen_at > one.seen_at:
                raise _occupied(alive[owner], why, remedy)
        suspects = {owner: one for owner, one in suspects.items() if owner in alive}


def _occupied(one: Process, why: str, remedy: str = _MANY) -> PartDown:
    return PartDown(
        f"'drivefeed {one.role}' ({one.owner}) works on this database already, and {why}. {remedy}",
        part=Part.CATALOG,
    )
