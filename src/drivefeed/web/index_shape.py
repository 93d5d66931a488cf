"""Where an organization's documents are in the vector index, as ``/v1/index`` answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from drivefeed.catalog.collection_rows import Made


class IndexShape(BaseModel):
    """In which collection of the vector index an organization's documents are."""

    index: str = Field(description="embedded, or qdrant/ and the collection of the settings.")
    collection: str
    provider: str = Field(description="Who embeds: queries have to be embedded alike.")
    model: str
    dimension: int
    distance: str


def index_shape(index: str, made: Made) -> IndexShape:
    """Return it as the answer has it."""
    return IndexShape(
        index=index,
        collection=made.name,
        provider=made.provider,
        model=made.model,
        dimension=made.dimension,
        distance=made.distance,
    )
