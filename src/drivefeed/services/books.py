"""Files in the line for pages that need not be there: their backend keeps the books by now.

A policy or a setting may name such a backend while files already wait for pages of our limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drivefeed.catalog.files import fetch
from drivefeed.catalog.ledger import OURS
from drivefeed.catalog.quota_line import in_line_after
from drivefeed.catalog.waiting import clear
from drivefeed.domain.errors import NotFound
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.catalog.engine import Catalog

LOOK_SECONDS: Final = 30.0

_log = log("books")


async def let_in_who_need_not_wait(catalog: Catalog, usage_owner: Callable[[str], str]) -> int:
    """Let those in the line go on whose backend keeps the books; return how many.

    Args:
        usage_owner: says by the name of a backend who keeps the books.
    """
    count, after = 0, ""
    while waiting := await in_line_after(catalog, after):
        after = waiting[-1]
        for import_id in waiting:
            try:
                _, _, file = await fetch(catalog, import_id)
            except NotFound:
                continue
            if usage_owner(file.backend) != OURS:
                await clear(catalog, import_id, event="let_in")
                count += 1
    if count:
        _log.info("let_in", count=count)
    return count
