"""The one process of many to which the embedded index belongs: a lease, kept while it lives."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from drivefeed.catalog import heartbeats
from drivefeed.domain.errors import NeedsAttention, PartDown
from drivefeed.domain.reasons import Reason
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

_LEASE = "embedded index"
_TERM_MS = 15_000
_RENEW_SECONDS = 3.0
_LOOK_SECONDS = 1.0

_log = log("index")


class IndexOwnership:
    """The right to open the embedded index, which one process has at a time.

    Args:
        owner: names the process.
    """

    def __init__(self, catalog: Catalog, owner: str) -> None:
        self._catalog = catalog
        self._owner = owner

    async def take(self) -> None:
        """Take it; wait as long as one that was killed may have left it.

        Raises:
            NeedsAttention: another process has it and goes on having it.
        """
        for look in range(round(_TERM_MS / 1000 / _LOOK_SECONDS) + 5):
            term = await self._try()
            if term is not None:
                return
            if look == 0:
                _log.info("index_is_owned", words="Waiting for the process that has the index.")
            await asyncio.sleep(_LOOK_SECONDS)
        raise NeedsAttention(
            "Another worker has the embedded index, which one process at a time can open. Give "
            "the queues index, publish and withdraw to that worker alone, or use a Qdrant server "
            "(DRIVEFEED_QDRANT_URL).",
            reason=Reason.MISCONFIGURED,
        )

    async def keep(self) -> None:
        """Renew it until cancelled.

        Raises:
            NeedsAttention: this process stood still for so long that another one took it.
        """
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                term = await self._try()
            except PartDown as error:
                _log.debug("index_lease_postponed", error=str(error))
                continue
            if term is None:
                raise NeedsAttention(
                    "This worker stood still, and another one has the embedded index by now.",
                    reason=Reason.MISCONFIGURED,
                )

    async def give_back(self) -> None:
        """Let another process have it at once."""
        await heartbeats.release_lease(self._catalog, _LEASE, self._owner)

    async def _try(self) -> int | None:
        return await heartbeats.take_lease(self._catalog, _LEASE, self._owner, for_ms=_TERM_MS)
