"""The index in a folder, through Qdrant Edge: synchronous, for one process and one thread.

It runs in a child process (:mod:`drivefeed.indexer.vectors.edge_child`), because Qdrant Edge
keeps Python's global lock during its calls: from a thread, a vacuum would stop the event loop for
seconds, and every flush for tens of milliseconds.

Booleans are kept as 0 and 1 here: in qdrant-edge-py 0.9, ``MatchValue(True)`` asks for the integer
1, so a boolean in the payload can never be matched. They leave this file as booleans again.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain.errors import NeedsAttention, Part, PartDown
from drivefeed.domain.gate import LEAST_ROOM
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.vectors import identity
from drivefeed.indexer.vectors.bm25 import Bm25
from drivefeed.indexer.vectors.folder_lock import locked
from drivefeed.indexer.vectors.fusion import depth, fuse
from drivefeed.indexer.vectors.payload import (
    DENSE,
    INDEXED,
    SPARSE,
    Condition,
    FieldKind,
    owner_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from drivefeed.indexer.vectors.identity import Identity

NEVER_INDEX: Final = 2**50
"""Kilobytes of vectors from which an approximate index is built: never, search stays exact.
Building one blocks all calls (3.6 s for 10,000 points on two cores)."""

Found = tuple[str, float, dict[str, Any]]
"""Point id, fused score, payload."""


class Shard:
    """An open index folder, locked against every other process.

    Raises (on construction):
        NeedsAttention: another process has the folder, or it was made for another model.
        PartDown: the folder cannot be opened or created.
    """

    def __init__(self, folder: Path, made_for: Identity) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = locked(folder)
            self._shard = self._opened(made_for)
        except OSError as error:
            raise PartDown(
                f"The vector index in {folder} cannot be opened: {error}.", part=Part.INDEX
            ) from error
        self._bm25 = Bm25()

    def upsert(self, points: Sequence[tuple[str, list[float], dict[str, Any]]]) -> None:
        """Write (id, dense vector, payload); lost by a power cut until :meth:`flush`.

        Raises:
            PartDown: the disk is nearly full.
        """
        import qdrant_edge as edge

        self._require_room()
        written = []
        for point_id, vector, payload in points:
            sparse = edge.SparseVector(*self._bm25.document(payload["text"]))
            vectors: dict[str, Any] = {DENSE: vector, SPARSE: sparse}
            written.append(edge.Point(point_id, vectors, _stored(payload)))
        self._shard.update(edge.UpdateOperation.upsert_points(written))

    def search(
        self, vector: list[float], text: str, must: Sequence[Condition], limit: int
    ) -> list[Found]:
        """Return the best points by dense and sparse similarity, fused by reciprocal rank."""
        import qdrant_edge as edge

        words, weights = self._bm25.query(text)
        queries = [edge.Query.Nearest(vector, using=DENSE)]
        if words:
            queries.append(edge.Query.Nearest(edge.SparseVector(words, weights), using=SPARSE))
        selected = _filter(must)
        rankings = self._shard.query_batch(
            edge.QueryBatchRequest(
                [
                    edge.QueryRequest(query=query, filter=selected, limit=depth(limit))
                    for query in queries
                ]
            )
        )
        dense, sparse = ([(str(h.id), h.score) for h in hits] for hits in (*rankings, [])[:2])
        best = fuse(dense, sparse, limit)
        records = self._shard.retrieve(
            [point_id for point_id, _ in best], with_payload=True, with_vector=False
        )
        payloads = {str(record.id): _restored(record.payload) for record in records}
        return [(point_id, score, payloads[point_id]) for point_id, score in best]

    def update(self, must: Sequence[Condition], payload: dict[str, Any]) -> int:
        """Set payload fields on the selected points; return how many there are."""
        import qdrant_edge as edge

        count = self.count(must)
        if count:
            self._shard.update(
                edge.UpdateOperation.set_payload_by_filter(_filter(must), _stored(payload))
            )
        return count

    def remove(self, must: Sequence[Condition]) -> int:
        """Remove the selected points; return how many there were."""
        import qdrant_edge as edge

        count = self.count(must)
        if count:
            self._shard.update(edge.UpdateOperation.delete_points_by_filter(_filter(must)))
        return count

    def count(self, must: Sequence[Condition]) -> int:
        """Count the selected points exactly."""
        import qdrant_edge as edge

        return int(self._shard.count(edge.CountRequest(filter=_filter(must), exact=True)))

    def scroll(
        self, offset: str | None, limit: int, must: Sequence[Condition]
    ) -> tuple[list[tuple[str, int, bool]], str | None]:
        """Return (import id, round, live) of a page of points, and where the next page begins.

        A point with the payload of somebody else counts as round 0 of an import without a name.
        """
        records, following = self._records(must, offset, limit, ["import_id", "round", "live"])
        return [owner_of(record.payload) for record in records], following

    def ids(
        self, must: Sequence[Condition], offset: str | None, limit: int
    ) -> tuple[list[tuple[str, str, int]], str | None]:
        """Return (id, import id, round) of a page of the selected points, and the next page."""
        records, following = self._records(must, offset, limit, ["import_id", "round"])
        return [(str(one.id), *owner_of(one.payload)[:2]) for one in records], following

    def remove_ids(self, ids: Sequence[str]) -> int:
        """Remove points by their ids; return how many there were."""
        import qdrant_edge as edge

        there = self._shard.retrieve(list(ids), with_payload=False, with_vector=False)
        if there:
            self._shard.update(edge.UpdateOperation.delete_points([one.id for one in there]))
        return len(there)

    def _records(
        self, must: Sequence[Condition], offset: str | None, limit: int, fields: list[str]
    ) -> tuple[list[Any], str | None]:
        import qdrant_edge as edge

        records, following = self._shard.scroll(
            edge.ScrollRequest(
                offset=offset, limit=limit, filter=_filter(must), with_payload=fields
            )
        )
        return records, None if following is None else str(following)

    def flush(self) -> None:
        """Bring everything written so far to the disk."""
        self._shard.flush()

    def vacuum(self) -> None:
        """Give back the room of removed points (0.9 s for 20,000 points with a third removed)."""
        self._shard.optimize()

    def close(self) -> None:
        """Flush, close and unlock."""
        self._shard.flush()
        self._shard.close()
        self._lock.close()

    def _opened(self, made_for: Identity) -> Any:
        import qdrant_edge as edge

        path, facts = self._folder / "shard", self._folder / "identity.json"
        unfinished = self._folder / "creating"
        stored = identity.read(facts)
        if stored is not None:
            made_for.require(stored, f"in {self._folder}")
            return self._guarded(lambda: edge.EdgeShard.load(str(path)))
        if path.exists() and not unfinished.exists():
            raise NeedsAttention(
                f"The folder {self._folder} holds vectors, but the file identity.json, which says "
                "what they were made for, is missing. Restore it, or delete the folder and start "
                "again: 'drivefeed reindex --anew' then builds it from the copies in the store.",
                reason=Reason.MISCONFIGURED,
            )
        self._require_room()
        unfinished.touch()
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        shard = self._guarded(lambda: _created(str(path), made_for.dimension))
        identity.write(facts, made_for)
        unfinished.unlink()
        return shard

    def _require_room(self) -> None:
        free = shutil.disk_usage(self._folder).free
        if free < LEAST_ROOM:
            raise PartDown(
                f"Only {free // 2**20} MiB are free on the disk of the vector index "
                f"({self._folder}); nothing is written below {LEAST_ROOM // 2**20} MiB. "
                "Free some space.",
                part=Part.INDEX,
            )

    def _guarded(self, open_it: Callable[[], Any]) -> Any:
        try:
            return open_it()
        except Exception as error:
            # The library raises bare Exceptions, told apart by their text alone.
            raise PartDown(
                f"The vector index in {self._folder} cannot be opened: {error}", part=Part.INDEX
            ) from error


def _created(path: str, dimension: int) -> Any:
    import qdrant_edge as edge

    shard = edge.EdgeShard.create(
        path,
        edge.EdgeConfig(
            vectors={DENSE: edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine)},
            sparse_vectors={SPARSE: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
            optimizers=edge.EdgeOptimizersConfig(
                indexing_threshold=NEVER_INDEX, default_segment_number=1
            ),
            wal_enabled=True,
        ),
    )
    kinds: dict[FieldKind, Any] = {
        "keyword": edge.PayloadSchemaType.Keyword,
        "integer": edge.PayloadSchemaType.Integer,
        "bool": edge.PayloadSchemaType.Integer,
    }
    for field, kind in INDEXED.items():
        shard.update(edge.UpdateOperation.create_field_index(field, kinds[kind]))
    shard.flush()
    return shard


def _filter(must: Sequence[Condition]) -> Any:
    import qdrant_edge as edge

    if not must:
        return None
    return edge.Filter(
        must=[
            edge.FieldCondition(
                field,
                match=edge.MatchAny(value)
                if isinstance(value, list)
                else edge.MatchValue(_number_if_boolean(value)),
            )
            for field, value in must
        ]
    )


def _stored(payload: dict[str, Any]) -> dict[str, Any]:
    return {field: _number_if_boolean(value) for field, value in payload.items()}


def _restored(payload: dict[str, Any]) -> dict[str, Any]:
    flags = {field: bool(payload[field]) for field, kind in INDEXED.items() if kind == "bool"}
    return payload | flags


def _number_if_boolean(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value
