"""What the catalog has to say of a drive, worked out from graphsim's tree alone.

The rules of scope are written down here once more, on purpose in another way than in the engine.
"""

from __future__ import annotations

import fnmatch
import hashlib
from typing import TYPE_CHECKING

from drivefeed.domain.reasons import Reason
from quirks.stand import FREE

if TYPE_CHECKING:
    from drivefeed.domain.model import Policy
    from graphsim.drives import MemoryDrive
    from graphsim.items import Item

READ = {"txt", "md"}


def sha256(drive: MemoryDrive, item: Item) -> str:
    """The content of a file."""
    body = drive._bodies[item.id]
    return hashlib.sha256(body.read(0, body.size)).hexdigest()


def is_there(drive: MemoryDrive, identifier: str) -> bool:
    item = drive.tree.items.get(identifier)
    return item is not None and not item.deleted


def covered(drive: MemoryDrive, root: str, policy: Policy) -> dict[str, str | None]:
    """Files below a folder with the reason why a policy skips each; None where it takes it."""
    if not is_there(drive, root):
        return {}
    depth = len(drive.tree.names(drive.tree.items[root]))
    found: dict[str, str | None] = {}
    for item in drive.tree.descendants(root):
        if item.is_container:
            continue
        names = drive.tree.names(item)[depth:]
        found[item.id] = _skipped(names, item, policy)
    return found


def _skipped(names: list[str], item: Item, policy: Policy) -> str | None:
    ending = item.name.rpartition(".")[2]
    if len(names) > 1 and not policy.subfolders:
        return Reason.IN_SUBFOLDER
    if any(fnmatch.fnmatch(item.name, one) for one in policy.exclude):
        return Reason.EXCLUDED_BY_FILTER
    if policy.types:
        return None if ending in policy.types else Reason.TYPE_NOT_INCLUDED
    return None if ending in READ else Reason.UNSUPPORTED_TYPE


def policies() -> list[Policy]:
    """Those that connections of an example have in turns."""
    from dataclasses import replace

    return [
        FREE,
        replace(FREE, types=("md",)),
        replace(FREE, subfolders=False),
        replace(FREE, exclude=("x*",)),
    ]
