"""The collection on a Qdrant server: made once, and recognised afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.vectors.payload import DENSE, INDEXED, SPARSE, Condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drivefeed.indexer.vectors.identity import Identity

_HTTP_CONFLICT = 409


async def open_collection(
    client: Any, collection: str, made_for: Identity, where: str, *, index: bool
) -> None:
    """Create the collection if it is not there, and check that it was made for our model.

    Two processes may do this at once. A creation that was cut off is completed: creating a
    payload index that is there already does nothing.

    Args:
        client: an ``AsyncQdrantClient``.
        collection: the collection's name.
        made_for: what it must have been made for.
        where: how to name the collection in a sentence.
        index: whether to create the payload indexes.

    Raises:
        NeedsAttention: it was made for another model or by something else.
    """
    if not await client.collection_exists(collection):
        await _create(client, collection, made_for)
    config = (await client.get_collection(collection)).config
    if config.metadata is None:
        raise NeedsAttention(
            f"Qdrant keeps no metadata for {where}. Either something else made the collection "
            "(then choose another name), or the server is older than 1.16 (then upgrade it).",
            reason=Reason.MISCONFIGURED,
        )
    made_for.require(config.metadata, f"({where})")
    if index:
        await _create_indexes(client, collection)


def filter_for(must: Sequence[Condition]) -> Any:
    """Return the conditions as a filter of qdrant-client."""
    from qdrant_client import models

    return models.Filter(
        must=[
            models.FieldCondition(
                key=field,
                match=models.MatchAny(any=value)
                if isinstance(value, list)
                else models.MatchValue(value=value),
            )
            for field, value in must
        ]
    )


async def _create(client: Any, collection: str, made_for: Identity) -> None:
    from qdrant_client import models
    from qdrant_client.http.exceptions import UnexpectedResponse

    try:
        await client.create_collection(
            collection,
            vectors_config={
                DENSE: models.VectorParams(size=made_for.dimension, distance=models.Distance.COSINE)
            },
            sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            metadata=made_for.as_mapping(),
        )
    except UnexpectedResponse as error:
        if error.status_code != _HTTP_CONFLICT:
            raise


async def _create_indexes(client: Any, collection: str) -> None:
    from qdrant_client import models

    kinds: dict[str, Any] = {
        "keyword": models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD),
        "integer": models.PayloadSchemaType.INTEGER,
        "bool": models.PayloadSchemaType.BOOL,
    }
    tenant = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    for field, kind in INDEXED.items():
        schema = tenant if field == "org_id" else kinds[kind]
        await client.create_payload_index(collection, field, field_schema=schema, wait=True)
