"""Asks for the permissions of files, where a connection leaves out those with their own.

It is asked before it is decided: when a listing is to be settled, before a scan, and for a plan.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from drivefeed.catalog.permissions import note_permissions, unasked
from drivefeed.domain.budget import Lane
from drivefeed.domain.errors import NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.delta import TreeItem
    from drivefeed.domain.model import Connection
    from drivefeed.ports import Source

_AT_ONCE = 4
"""Questions under way at the same time; the budget of the app paces them beside that."""

_log = log("permissions")


async def ask_as_far_as_told(
    catalog: Catalog,
    source: Source,
    drive: Drive,
    wanting: Sequence[Connection],
    *,
    until: float,
    all_of_it: bool = False,
) -> bool:
    """Ask for what is to be decided; False where the time was too short.

    Where it is not told, the files are decided about without: each asks a person, then, right
    before it would be copied.

    Args:
        wanting: the connections that decide.
        until: when to stop, by ``time.monotonic``.
        all_of_it: whether to ask for the whole tree, and not for what a listing told anew.

    Raises:
        DrivefeedError: the source cannot be asked.
    """
    try:
        return await ask_for_permissions(
            catalog,
            source.at(Lane.BACKFILL),
            drive,
            wanting,
            only_dirty=not all_of_it,
            is_over=lambda: time.monotonic() > until,
        )
    except NeedsAttention as error:
        if error.reason is not Reason.PERMISSIONS_UNKNOWN:
            raise
        _log.warning("permissions_not_told", drive=drive.name, error=str(error))
        return True


async def ask_for_permissions(
    catalog: Catalog,
    source: Source,
    drive: Drive,
    wanting: Sequence[Connection],
    *,
    only_dirty: bool,
    is_over: Callable[[], bool] = lambda: False,
    tell: Callable[[int], None] | None = None,
) -> bool:
    """Ask for each file that a connection wants but for its permissions, and keep the answers.

    Args:
        wanting: connections of the drive; those that take files whatever their permissions are
            ask for nothing.
        only_dirty: whether to ask only about items about which a decision is due.
        is_over: asked now and then whether to stop.
        tell: called with the number of files that were asked about, now and then.

    Returns:
        Whether nothing is left to ask.

    Raises:
        NeedsAttention: they are not told to this account.
        DrivefeedError: the source cannot be asked. What was told before that is kept.
    """
    asking = [each for each in wanting if each.policy.own_permissions == "exclude"]
    if not asking:
        return True
    cursor: str | None = None
    asked = 0
    while True:
        piece = await unasked(catalog, drive, asking, cursor=cursor, only_dirty=only_dirty)
        for start in range(0, len(piece.files), _AT_ONCE):
            some = piece.files[start : start + _AT_ONCE]
            await _ask(catalog, source, drive, some)
            asked += len(some)
            if tell is not None:
                tell(asked)
            if is_over():
                return False
        if piece.cursor is None:
            return True
        cursor = piece.cursor


async def _ask(catalog: Catalog, source: Source, drive: Drive, some: Sequence[TreeItem]) -> None:
    answers = await asyncio.gather(
        *(source.has_own_permissions(drive.ref, one.item_id) for one in some),
        return_exceptions=True,
    )
    told = {
        one: is_own for one, is_own in zip(some, answers, strict=True) if isinstance(is_own, bool)
    }
    if told:
        await note_permissions(catalog, drive, told)
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, NotFound):
            raise answer
