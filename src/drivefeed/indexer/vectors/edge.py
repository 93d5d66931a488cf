"""The embedded vector index: Qdrant Edge on a folder, in a child process of its own."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain.errors import Part, PartDown
from drivefeed.indexer.vectors.child_link import ChildLink
from drivefeed.indexer.vectors.identity import FIRST_PROVIDER, Identity
from drivefeed.indexer.vectors.payload import (
    check_dimension,
    clean,
    conditions,
    from_payload,
    of_org,
    of_round,
    placement,
    to_payload,
    vector_of,
)
from drivefeed.ports import SearchHit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from drivefeed.ports import Point, RoundRow, SearchFilter

_BATCH: Final = 256
_SCROLL: Final = 1_000


class EdgeIndex:
    """A :class:`~drivefeed.ports.VectorIndex` in a folder, for one process at a time.

    Nothing happens before the first call: that one starts the child process, which locks the
    folder and opens or creates the index. A child that died is started again by the next call.
    Search is exact, and so grows with the number of points: above some hundred thousand, use a
    Qdrant server.

    Args:
        folder: where the index lives; created if it is not there.
        model_name: the embedding model, remembered on creation.
        dimension: how many numbers a dense vector has, remembered on creation.
        provider: who runs the model, remembered on creation.
    """

    def __init__(
        self,
        folder: Path,
        *,
        model_name: str,
        dimension: int,
        provider: str = FIRST_PROVIDER,
    ) -> None:
        self._folder = folder
        self._made_for = Identity(model=model_name, dimension=dimension, provider=provider)
        self._link: ChildLink | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def upsert(self, points: Sequence[Point]) -> None:
        """Write points; a point with the same id is replaced. Durable on return.

        Raises:
            ValueError: a vector has the wrong dimension (nothing is written then).
            PartDown: the child process ended, or the disk is nearly full.
        """
        dimension = self._made_for.dimension
        for point in points:
            check_dimension(point.vector, dimension)
        for start in range(0, len(points), _BATCH):
            batch = points[start : start + _BATCH]
            rows = [(p.point_id, vector_of(p, dimension), to_payload(p)) for p in batch]
            await self._call("upsert", rows)

    async def search(
        self, *, vector: Sequence[float], text: str, where: SearchFilter, limit: int
    ) -> list[SearchHit]:
        """Find the best points by dense and BM25 similarity, fused by reciprocal rank.

        The points of the hits come without vectors. Fewer than ``limit`` hits mean there are no
        more.
        """
        if limit < 1:
            return []
        numbers = list(map(float, vector))
        check_dimension(numbers, self._made_for.dimension)
        found = await self._call("search", numbers, clean(text), conditions(where), limit)
        return [
            SearchHit(score, from_payload(point_id, payload)) for point_id, score, payload in found
        ]

    async def set_live(self, *, import_id: str, round_: int, live: bool) -> int:
        """Set the live flag on all points of a round; return how many there are."""
        return int(await self._call("update", of_round(import_id, round_), {"live": live}))

    async def set_folders(self, *, document_id: str, name: str, folders: tuple[str, ...]) -> int:
        """Update name and folders on all points of a document; no vector is touched."""
        must = [("document_id", document_id)]
        return int(await self._call("update", must, placement(name, folders)))

    async def remove(self, *, import_id: str, round_: int) -> int:
        """Remove all points of a round; return how many there were."""
        return int(await self._call("remove", of_round(import_id, round_)))

    async def remove_of(self, *, org_id: str) -> int:
        """Remove all points of an organization; return how many there were."""
        return int(await self._call("remove", of_org(org_id)))

    async def count(self, *, import_id: str | None = None, round_: int | None = None) -> int:
        """Count points exactly, of one round or of the whole collection."""
        return int(await self._call("count", of_round(import_id, round_)))

    async def rounds(self, *, org_id: str | None = None) -> AsyncIterator[RoundRow]:
        """Yield (import id, round, live, points) for all in the index, or for an organization's.

        Points are read a thousand at a time between other calls; what changes meanwhile may be
        told as it was or as it is.
        """
        counts: Counter[tuple[str, int, bool]] = Counter()
        offset: str | None = None
        while True:
            rows, offset = await self._call("scroll", offset, _SCROLL, of_org(org_id))
            counts.update((import_id, round_, live) for import_id, round_, live in rows)
            if offset is None:
                break
        for (import_id, round_, live), points in sorted(counts.items()):
            yield import_id, round_, live, points

    async def points_of(self, *, import_id: str, round_: int) -> list[str]:
        """Return the ids of a round's points; see :class:`~drivefeed.ports.VectorIndex`."""
        must = of_round(import_id, round_) if import_id else []
        found: list[str] = []
        offset: str | None = None
        while True:
            rows, offset = await self._call("ids", must, offset, _SCROLL)
            found += [point_id for point_id, *owner in rows if owner == [import_id, round_]]
            if offset is None:
                return found

    async def remove_points(self, ids: Sequence[str]) -> int:
        """Remove points by their ids; return how many there were."""
        return int(await self._call("remove_ids", list(ids)))

    async def check(self) -> None:
        """Check that the index opens and fits the embedding model.

        Raises:
            PartDown: it cannot be opened.
            NeedsAttention: it was made for another model, or another process uses it.
        """
        await self._call("count", [])

    async def aclose(self) -> None:
        """Flush and close; calls after it are refused."""
        self._closed = True
        async with self._opening:
            if self._link is not None:
                await self._link.close()
                self._link = None

    async def drop(self) -> None:
        """Close, and erase the folder; fine if it is not there."""
        await self.aclose()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _call(self, method: str, *arguments: Any) -> Any:
        link = self._link
        if link is None or not link.alive:
            link = await self._open()
        return await link.call(method, *arguments)

    async def _open(self) -> ChildLink:
        async with self._opening:
            if self._closed:
                raise PartDown("The vector index was closed.", part=Part.INDEX)
            if self._link is None or not self._link.alive:
                self._link = await ChildLink.start(self._folder, self._made_for)
            return self._link
