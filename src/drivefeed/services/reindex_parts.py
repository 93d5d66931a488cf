"""What every reindex of an index works with."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from drivefeed.catalog.collection_rows import Made
    from drivefeed.catalog.engine import Catalog
    from drivefeed.indexer.collection import Collection
    from drivefeed.indexer.indexing import Indexing
    from drivefeed.indexer.library import Library
    from drivefeed.services.index_turns import IndexTurns

    OpenCollection = Callable[[Made], Awaitable[Collection]]


@dataclass(frozen=True, slots=True)
class ReindexParts:
    """The open parts of a reindex.

    Attributes:
        index: what the catalog calls the index.
        open_collection: opens one of its collections.
        turns: has the index for this process alone while it works; None for an embedded index,
            which belongs to one process anyway.
    """

    catalog: Catalog
    library: Library
    indexing: Indexing
    index: str
    open_collection: OpenCollection
    turns: IndexTurns | None = None

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Have the index alone.

        Raises (on entering):
            NeedsAttention: other processes have it open.
        """
        if self.turns is None:
            yield
            return
        async with self.turns.alone():
            yield

    async def require_turn(self) -> None:
        """Make sure, before what cannot be undone, that the index is still this process's alone.

        Raises:
            Transient: it may not be.
        """
        if self.turns is not None:
            await self.turns.require()
