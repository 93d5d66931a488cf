"""The index of a server among processes: open in many, and rebuilt by one that has it alone."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from drivefeed.catalog import index_turns
from drivefeed.catalog.collection_rows import ALL
from drivefeed.catalog.collections import collections_of, orgs_with_collections
from drivefeed.domain.errors import NeedsAttention, PartDown
from drivefeed.domain.reasons import Reason
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.collection_rows import Collections
    from drivefeed.catalog.engine import Catalog
    from drivefeed.indexer.library import Library

_TERM_MS: Final = 15_000
_RENEW_SECONDS: Final = 3.0
_LOOK_SECONDS: Final = 1.0

_log = log("index")


class IndexTurns:
    """A process's part in an index that others have open, too.

    Args:
        library: the index, as this process opened it; None for one that only wants it for a turn.
        index: what the catalog calls it.
        owner: names the process.
    """

    def __init__(
        self, catalog: Catalog, library: Library | None, *, index: str, owner: str
    ) -> None:
        self._catalog = catalog
        self._library = library
        self._index = index
        self._owner = owner
        self._term = 0
        self._one_at_a_time = asyncio.Lock()
        self._asking = asyncio.Lock()

    async def take(self) -> None:
        """Open it; wait as long as a rebuild may outlive a process that was killed.

        Raises:
            NeedsAttention: another process rebuilds it, or did so after this one looked.
        """
        for look in range(round(_TERM_MS / 1000 / _LOOK_SECONDS) + 5):
            term = await index_turns.enter(self._catalog, self._index, self._owner, for_ms=_TERM_MS)
            if term is not None:
                self._term = term
                await self._require_present()
                return
            if look == 0:
                _log.info("index_is_rebuilt", words="Waiting for the process that rebuilds it.")
            await asyncio.sleep(_LOOK_SECONDS)
        raise NeedsAttention(
            "Another process rebuilds the vector index and has it alone until it has swapped. "
            "Start this worker again after that; 'drivefeed reindex --status' tells how far it is.",
            reason=Reason.MISCONFIGURED,
        )

    async def keep(self) -> None:
        """Have it open until cancelled.

        Raises:
            NeedsAttention: this process stood still, and another one rebuilt it meanwhile.
        """
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            try:
                is_as_before = await self._stay()
            except PartDown as error:
                _log.debug("index_lease_postponed", error=str(error))
                continue
            if not is_as_before:
                raise NeedsAttention(
                    "This worker stood still, and another process rebuilt the vector index "
                    "meanwhile. Start this one again.",
                    reason=Reason.MISCONFIGURED,
                )

    async def give_back(self) -> None:
        """Have it open no more."""
        await index_turns.leave(self._catalog, self._index, self._owner)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Have it open for a while, as a command does.

        Raises (on entering):
            NeedsAttention: as :meth:`take` does.
        """
        await self.take()
        keeping = asyncio.create_task(self.keep(), name="index turns")
        try:
            yield
        finally:
            keeping.cancel()
            # What it found is told by whoever needs the turn; see `require`.
            await asyncio.gather(keeping, return_exceptions=True)
            await self.give_back()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Have the index alone: nobody else has it open, nor opens it meanwhile.

        Raises (on entering):
            NeedsAttention: others have it open.
        """
        async with self._one_at_a_time:
            async with self._asking:
                others, term = await index_turns.take_turn(
                    self._catalog, self._index, self._owner, for_ms=_TERM_MS
                )
                self._term = self._term if term is None else term
            if term is None:
                who = "Another process has" if others == 1 else f"{others} other processes have"
                raise NeedsAttention(
                    f"{who} the vector index open, and would go on with the collection that a "
                    "reindex removes. Stop the other workers with the queues index, publish and "
                    "withdraw while it runs; it goes on by itself then. Start them again after it.",
                    reason=Reason.MISCONFIGURED,
                )
            try:
                yield
            finally:
                await index_turns.end_turn(self._catalog, self._index, self._owner)

    @property
    def guard(self) -> tuple[str, str]:
        """What :func:`drivefeed.catalog.index_turns.require_turn` asks for: index and process."""
        return self._index, self._owner

    async def require(self) -> None:
        """Make sure that this process still has the index alone, before what cannot be undone.

        Raises:
            Transient: it may not.
        """
        async with self._catalog.read() as connection:
            await index_turns.require_turn(
                connection, self._index, self._owner, now=self._catalog.clock.now()
            )

    async def _stay(self) -> bool:
        # Not while a turn is being taken: its term is not known here yet.
        async with self._asking:
            return await index_turns.stay(
                self._catalog, self._index, self._owner, term=self._term, for_ms=_TERM_MS
            )

    async def _require_present(self) -> None:
        """Refuse to go on with collections that were replaced since they were opened."""
        library = self._library
        if library is None:
            return
        whose = {ALL, *await orgs_with_collections(self._catalog, self._index)}
        known = {
            org_id: _names(await collections_of(self._catalog, self._index, org_id))
            for org_id in whose | {*library.owners}
        }
        opened = {org_id: _opened(library, org_id) for org_id in known}
        if opened != known:
            await self.give_back()
            raise NeedsAttention(
                "The vector index was rebuilt while this process started. Start it again.",
                reason=Reason.MISCONFIGURED,
            )


def _names(known: Collections) -> tuple[str | None, str | None]:
    return (
        known.active.name if known.active else None,
        known.building.name if known.building else None,
    )


def _opened(library: Library, org_id: str) -> tuple[str | None, str | None]:
    shelf = library.of(org_id) if org_id else library.house
    current = None if shelf.is_lodger else shelf.current.name
    return current, shelf.building.name if shelf.building else None
