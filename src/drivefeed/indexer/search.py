"""Search as a person means it: words in, the best chunks of what is live now out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from drivefeed.indexer.snippet import Snippet, snippet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from drivefeed.indexer.library import Library
    from drivefeed.ports import Point, SearchFilter, SearchHit

    Keep = Callable[[Sequence[Point]], Awaitable[set[tuple[str, int]]]]
    """Given found points, return the (import id, round) pairs of them that are live."""

__all__ = ["Searcher", "Snippet", "snippet"]

_OVERFETCH: Final = 2
_GROWTH: Final = 4
_MOST: Final = 4_096
"""Candidates after which a search gives back what it has."""


class Searcher:
    """Embeds a query and asks the index until there are enough hits the catalog agrees with.

    The index may lag behind the catalog for a moment (a round was published, its points are not
    hidden yet), so each hit is checked before it is shown.

    Args:
        library: where the collection that an organization has in use is taken from, once for each
            search.
    """

    def __init__(self, library: Library) -> None:
        self._library = library

    async def search(
        self,
        query: str,
        where: SearchFilter,
        limit: int,
        *,
        keep: Keep | None = None,
        per_document: int | None = None,
    ) -> list[SearchHit]:
        """Find the best chunks, best first.

        Args:
            query: words or a question; a blank one finds nothing.
            where: which points may be found at all.
            limit: how many hits are wanted at most.
            keep: tells which rounds are live; hits of others are dropped. None keeps all.
            per_document: how many hits of one document are wanted at most; None for any number.

        Returns:
            At most ``limit`` hits; fewer if there are no more.

        Raises:
            PartDown, NeedsAttention: the embedder or the index cannot answer.
        """
        if limit < 1 or not query.strip():
            return []
        async with self._library.of(where.org_id).using() as one:
            vector = await one.embedder.embed_query(query)
            wanted = limit * _OVERFETCH
            while True:
                found = await one.index.search(vector=vector, text=query, where=where, limit=wanted)
                kept = await _kept(found, keep)
                hits = _spread(kept, per_document)[:limit]
                if len(hits) == limit or len(found) < wanted or wanted >= _MOST:
                    return hits
                wanted = min(wanted * _GROWTH, max(_MOST, limit))

    async def holds_nothing(self, org_id: str) -> bool:
        """Whether the collection that an organization has in use has no point at all.

        Raises:
            PartDown: the index does not answer.
        """
        return await self._library.of(org_id).count() == 0


async def _kept(found: list[SearchHit], keep: Keep | None) -> list[SearchHit]:
    if keep is None or not found:
        return found
    live = await keep([hit.point for hit in found])
    return [hit for hit in found if (hit.point.import_id, hit.point.round) in live]


def _spread(hits: list[SearchHit], per_document: int | None) -> list[SearchHit]:
    if per_document is None:
        return hits
    taken: Counter[str] = Counter()
    spread = []
    for hit in hits:
        document = hit.point.document_id
        if taken[document] < per_document:
            taken[document] += 1
            spread.append(hit)
    return spread
