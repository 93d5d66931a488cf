"""Points of a Qdrant server: as its client takes them and searches them; by their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drivefeed.indexer.vectors.payload import (
    DENSE,
    SPARSE,
    conditions,
    of_round,
    owner_of,
    to_payload,
    vector_of,
)
from drivefeed.indexer.vectors.server_collection import filter_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from drivefeed.indexer.vectors.bm25 import Bm25
    from drivefeed.ports import Point, SearchFilter

_SCROLL: Final = 1_000


async def ids_of(
    session: Callable[[str], AbstractAsyncContextManager[Any]],
    collection: str,
    import_id: str,
    round_: int,
) -> list[str]:
    """Return the ids of a round's points; for ("", 0), of those that are none of ours.

    Args:
        session: opens the client for a page of points.
    """
    found: list[str] = []
    offset: Any = None
    while True:
        async with session("list points") as client:
            records, offset = await client.scroll(
                collection,
                scroll_filter=filter_for(of_round(import_id, round_) if import_id else []),
                limit=_SCROLL,
                offset=offset,
                with_payload=["import_id", "round"],
            )
        found += [
            str(one.id) for one in records if owner_of(one.payload)[:2] == (import_id, round_)
        ]
        if offset is None:
            return found


async def remove_ids(client: Any, collection: str, ids: Sequence[str]) -> int:
    """Remove points by their ids; return how many there were."""
    from qdrant_client import models

    there = await client.retrieve(collection, list(ids), with_payload=False, with_vectors=False)
    if there:
        selector = models.PointIdsList(points=[one.id for one in there])
        await client.delete(collection, points_selector=selector, wait=True)
    return len(there)


def structs_of(bm25: Bm25, dimension: int, points: Sequence[Point]) -> list[Any]:
    """Return points as the client takes them."""
    from qdrant_client import models

    structs = []
    for point in points:
        payload = to_payload(point)
        words, weights = bm25.document(payload["text"])
        vectors: dict[str, Any] = {
            DENSE: vector_of(point, dimension),
            SPARSE: models.SparseVector(indices=words, values=weights),
        }
        structs.append(models.PointStruct(id=point.point_id, vector=vectors, payload=payload))
    return structs


def requests_for(
    bm25: Bm25, vector: list[float], text: str, where: SearchFilter, limit: int
) -> list[Any]:
    """Return the searches for one query: by meaning, and by words if it has any."""
    from qdrant_client import models

    queries: list[tuple[Any, str]] = [(vector, DENSE)]
    words, weights = bm25.query(text)
    if words:
        queries.append((models.SparseVector(indices=words, values=weights), SPARSE))
    selected = filter_for(conditions(where))
    return [
        models.QueryRequest(
            query=query, using=using, filter=selected, limit=limit, with_payload=True
        )
        for query, using in queries
    ]
