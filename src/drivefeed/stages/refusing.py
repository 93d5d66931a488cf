"""Asks right before a copy what no listing tells: whether its connections leave a file out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.errors import NotFound, Permanent
from drivefeed.domain.reasons import Reason
from drivefeed.domain.scope import LABELLED_TYPES, ending

if TYPE_CHECKING:
    from drivefeed.catalog.files import File
    from drivefeed.domain.remote import DriveRef
    from drivefeed.ports import ObjectStore, Source
    from drivefeed.stages.imports import Task


def gone(name: str) -> Permanent:
    """Return the error for a file that its source no longer has."""
    words = f"'{name}' was gone when it was to be copied."
    return Permanent(words, reason=Reason.GONE_AT_SOURCE)


async def refuse_unwanted(source: Source, store: ObjectStore, task: Task) -> None:
    """Refuse a file with a label, or with permissions of its own, where no connection wants it.

    Labels are asked for each version: a label is part of an Office file, so that giving or taking
    one makes another version. Permissions were mostly asked for before the file was admitted;
    what slipped through is asked here.

    Raises:
        Permanent: no connection wants it, or it is gone.
        NeedsAttention: it is not told to this account.
    """
    file = task.file
    if file.drive is None or file.item_id is None:
        return
    asks_labels = file.excludes_labelled and ending(file.name) in LABELLED_TYPES
    asks_permissions = file.excludes_own_permissions and file.own_permissions is not False
    if not (asks_labels or asks_permissions):
        return
    if await store.stat(task.object_key) is not None:
        return
    try:
        if asks_labels:
            await _refuse_labelled(source, file.drive, file.item_id, file)
        if asks_permissions:
            await _refuse_own_permissions(source, file.drive, file.item_id, file)
    except NotFound as error:
        raise gone(file.name) from error


async def _refuse_labelled(source: Source, drive: DriveRef, item_id: str, file: File) -> None:
    if await source.is_labelled(drive, item_id):
        raise Permanent(
            f"'{file.name}' has a sensitivity label, and its connection excludes those.",
            reason=Reason.LABELLED,
        )


async def _refuse_own_permissions(
    source: Source, drive: DriveRef, item_id: str, file: File
) -> None:
    if await source.has_own_permissions(drive, item_id):
        raise Permanent(
            f"'{file.name}' has permissions of its own, and its connection excludes files with "
            "such.",
            reason=Reason.OWN_PERMISSIONS,
        )
