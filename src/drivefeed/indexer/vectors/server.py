"""The vector index on a Qdrant server (1.16 or newer), for many processes and machines."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Self

from drivefeed.indexer.vectors.fusion import depth, fuse
from drivefeed.indexer.vectors.identity import FIRST_PROVIDER, Identity
from drivefeed.indexer.vectors.payload import (
    Condition,
    check_dimension,
    from_payload,
    of_org,
    of_round,
    owner_of,
    placement,
)
from drivefeed.indexer.vectors.server_client import in_process, remote
from drivefeed.indexer.vectors.server_collection import filter_for, open_collection
from drivefeed.indexer.vectors.server_errors import translated
from drivefeed.indexer.vectors.server_points import ids_of, remove_ids, requests_for, structs_of
from drivefeed.outbound import Outbound
from drivefeed.ports import SearchHit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from drivefeed.indexer.vectors.bm25 import Bm25
    from drivefeed.ports import Point, RoundRow, SearchFilter

_BATCH: Final = 128
_SCROLL: Final = 1_000


class ServerIndex:
    """A :class:`~drivefeed.ports.VectorIndex` in a collection of a Qdrant server.

    Nothing happens before the first call: that one connects, creates the collection if it is not
    there, and checks that it was made for the same model.

    Args:
        url: where the server is, such as ``http://127.0.0.1:6333``.
        api_key: the key, if the server asks for one.
        collection: the collection's name.
        model_name: the embedding model, remembered on creation.
        dimension: how many numbers a dense vector has, remembered on creation.
        provider: who runs the model, remembered on creation.
        timeout: seconds a request may take.
        outbound: proxies and authorities to trust; by default what the environment says.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        collection: str = "drivefeed",
        model_name: str,
        dimension: int,
        provider: str = FIRST_PROVIDER,
        timeout: int = 30,
        outbound: Outbound | None = None,
    ) -> None:
        self._where = f"the collection {collection!r} at {url}"
        self._collection = collection
        self._made_for = Identity(model=model_name, dimension=dimension, provider=provider)
        self._connect: Callable[[], Any] = lambda: remote(
            url, api_key, timeout, outbound or Outbound.from_environment()
        )
        self._local = False
        self._client: Any = None
        self._bm25: Bm25 | None = None
        self._opening = asyncio.Lock()
        self._turn: asyncio.Lock | nullcontext[None] = nullcontext()

    @classmethod
    def local(
        cls, path: str, *, model_name: str, dimension: int, provider: str = FIRST_PROVIDER
    ) -> Self:
        """Make an index on qdrant-client's local mode, for tests and comparisons only.

        Local mode is an imitation of the server in Python: it works on the event loop, has no
        payload indexes, and must not be used by two threads, so calls take turns.

        Args:
            path: a folder, or ``:memory:``.
            model_name: as for the class.
            dimension: as for the class.
            provider: as for the class.
        """
        index = cls(path, model_name=model_name, dimension=dimension, provider=provider)
        index._connect = lambda: in_process(path)
        index._local = True
        index._turn = asyncio.Lock()
        return index

    async def upsert(self, points: Sequence[Point]) -> None:
        """Write points; a point with the same id is replaced. Durable on return.

        Raises:
            ValueError: a vector has the wrong dimension (nothing is written then).
            PartDown, Throttled, Transient: as their docstrings say.
        """
        for point in points:
            check_dimension(point.vector, self._made_for.dimension)
        for start in range(0, len(points), _BATCH):
            batch = points[start : start + _BATCH]
            async with self._session("write points") as client:
                structs = await asyncio.to_thread(
                    structs_of, self._encoder(), self._made_for.dimension, batch
                )
                await client.upsert(self._collection, points=structs, wait=True)

    async def search(
        self, *, vector: Sequence[float], text: str, where: SearchFilter, limit: int
    ) -> list[SearchHit]:
        """Find the best points by dense and BM25 similarity, fused by reciprocal rank.

        Both rankings come with one request. The points of the hits come without vectors. Fewer
        than ``limit`` hits mean there are no more.
        """
        if limit < 1:
            return []
        numbers = list(map(float, vector))
        check_dimension(numbers, self._made_for.dimension)
        async with self._session("search") as client:
            answers = await client.query_batch_points(
                self._collection,
                requests=requests_for(self._encoder(), numbers, text, where, depth(limit)),
            )
        payloads = {str(hit.id): hit.payload for answer in answers for hit in answer.points}
        rankings = [[(str(hit.id), hit.score) for hit in answer.points] for answer in answers]
        dense, sparse = (*rankings, [])[:2]
        best = fuse(dense, sparse, limit)
        return [
            SearchHit(score, from_payload(point_id, payloads[point_id])) for point_id, score in best
        ]

    async def set_live(self, *, import_id: str, round_: int, live: bool) -> int:
        """Set the live flag on all points of a round; return how many there are."""
        return await self._set(of_round(import_id, round_), {"live": live})

    async def set_folders(self, *, document_id: str, name: str, folders: tuple[str, ...]) -> int:
        """Update name and folders on all points of a document; no vector is touched."""
        return await self._set([("document_id", document_id)], placement(name, folders))

    async def remove(self, *, import_id: str, round_: int) -> int:
        """Remove all points of a round; return how many there were."""
        return await self._remove(of_round(import_id, round_))

    async def remove_of(self, *, org_id: str) -> int:
        """Remove all points of an organization; return how many there were."""
        return await self._remove(of_org(org_id))

    async def _remove(self, must: Sequence[Condition]) -> int:
        from qdrant_client import models

        async with self._session("remove points") as client:
            count = await self._count(client, must)
            if count:
                selector = models.FilterSelector(filter=filter_for(must))
                await client.delete(self._collection, points_selector=selector, wait=True)
            return count

    async def count(self, *, import_id: str | None = None, round_: int | None = None) -> int:
        """Count points exactly, of one round or of the whole collection."""
        async with self._session("count points") as client:
            return await self._count(client, of_round(import_id, round_))

    async def rounds(self, *, org_id: str | None = None) -> AsyncIterator[RoundRow]:
        """Yield (import id, round, live, points) for all in the index, or for an organization's.

        Points are read a thousand at a time between other calls; what changes meanwhile may be
        told as it was or as it is.
        """
        counts: Counter[tuple[str, int, bool]] = Counter()
        offset: Any = None
        while True:
            async with self._session("list points") as client:
                records, offset = await client.scroll(
                    self._collection,
                    scroll_filter=filter_for(of_org(org_id)),
                    limit=_SCROLL,
                    offset=offset,
                    with_payload=["import_id", "round", "live"],
                )
            counts.update(owner_of(record.payload) for record in records)
            if offset is None:
                break
        for (import_id, round_, live), points in sorted(counts.items()):
            yield import_id, round_, live, points

    async def points_of(self, *, import_id: str, round_: int) -> list[str]:
        """Return the ids of a round's points; see :class:`~drivefeed.ports.VectorIndex`."""
        return await ids_of(self._session, self._collection, import_id, round_)

    async def remove_points(self, ids: Sequence[str]) -> int:
        """Remove points by their ids; return how many there were."""
        async with self._session("remove points") as client:
            return await remove_ids(client, self._collection, ids)

    async def check(self) -> None:
        """Check that the server answers and the collection fits the embedding model.

        Raises:
            PartDown: the server does not answer.
            NeedsAttention: it refuses our key, or the collection was made for another model.
        """
        async with self._session("be checked") as client:
            await open_collection(
                client, self._collection, self._made_for, self._where, index=False
            )

    async def aclose(self) -> None:
        """Close connections."""
        async with self._opening:
            client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def drop(self) -> None:
        """Erase the collection, and close; fine if it is not there."""
        async with translated("be removed", self._where):
            client = self._client or await asyncio.to_thread(self._connect)
            try:
                await client.delete_collection(self._collection)
            finally:
                self._client = None
                await client.close()

    async def _set(self, must: Sequence[Condition], payload: dict[str, Any]) -> int:
        async with self._session("update points") as client:
            count = await self._count(client, must)
            if count:
                await client.set_payload(
                    self._collection, payload=payload, points=filter_for(must), wait=True
                )
            return count

    async def _count(self, client: Any, must: Sequence[Condition]) -> int:
        answer = await client.count(self._collection, count_filter=filter_for(must), exact=True)
        return int(answer.count)

    def _structs(self, points: Sequence[Point]) -> list[Any]:
        return structs_of(self._encoder(), self._made_for.dimension, points)

    def _encoder(self) -> Bm25:
        if self._bm25 is None:
            from drivefeed.indexer.vectors.bm25 import Bm25

            self._bm25 = Bm25()
        return self._bm25

    @asynccontextmanager
    async def _session(self, doing: str) -> AsyncIterator[Any]:
        """Hand out the client with the collection open, and translate what it raises."""
        async with translated(doing, self._where):
            if self._client is None:
                await self._open()
            async with self._turn:
                yield self._client

    async def _open(self) -> None:
        async with self._opening:
            if self._client is not None:
                return
            client = await asyncio.to_thread(self._connect)
            try:
                await open_collection(
                    client, self._collection, self._made_for, self._where, index=not self._local
                )
            except BaseException:
                await client.close()
                raise
            self._client = client
