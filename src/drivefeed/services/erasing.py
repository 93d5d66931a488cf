"""Erasures: what a disconnected connection brought goes, step by step, until its receipt is whole.

It is not whole before Microsoft was told to call no more, nor before a credential went that was to
go; where what was brought is kept, that is all there is to do. Content is withdrawn by the stages,
as any version is; only when all of it is out of store and index are the words about it cleared. A
process that is killed goes on where the receipt is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drivefeed.catalog.erasing import (
    clear_tree,
    end_leaving,
    is_told_of,
    purge_some,
    withdraw_some,
)
from drivefeed.catalog.heartbeats import release_lease, take_lease
from drivefeed.catalog.receipts import Receipt, receipts
from drivefeed.catalog.signing_out import sign_out_due
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

TICK_SECONDS: Final = 5.0
LEASE: Final = "erasing"
_LEASE_MS: Final = 60_000
_STEPS: Final = 20

_log = log("erasing")


class Erasures:
    """Goes on with erasures; of several processes, one does it at a time.

    Args:
        owner: names this process.
    """

    def __init__(self, catalog: Catalog, *, owner: str) -> None:
        self._catalog = catalog
        self._owner = owner

    async def tick(self) -> None:
        """Do a bounded piece of work, if there is any."""
        under_way = [one for one in await receipts(self._catalog) if one.ended_at is None]
        if not under_way:
            return
        if await take_lease(self._catalog, LEASE, self._owner, for_ms=_LEASE_MS) is None:
            return
        for one in under_way:
            await self._go_on(one)
        await release_lease(self._catalog, LEASE, self._owner)

    async def _go_on(self, receipt: Receipt) -> None:
        if receipt.signs_out and not receipt.signed_out:
            receipt = await sign_out_due(self._catalog, receipt)
        for _ in range(_STEPS):
            if receipt.policy == "erase":
                if await withdraw_some(self._catalog, receipt):
                    continue
                receipt, is_more = await purge_some(self._catalog, receipt)
                if is_more is None:
                    return
                if is_more:
                    continue
                receipt, is_more = await clear_tree(self._catalog, receipt)
                if is_more:
                    continue
            if receipt.signs_out != receipt.signed_out or await is_told_of(self._catalog, receipt):
                # What keeps the subscriptions tells Microsoft, and tries again if it must.
                return
            receipt = await end_leaving(self._catalog, receipt)
            _log.info(
                "left",
                connection_id=receipt.connection_id,
                policy=receipt.policy,
                documents=receipt.documents,
                imports=receipt.imports,
                items=receipt.items,
            )
            return
