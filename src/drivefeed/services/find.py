"""Find documents: search joined with the catalog, so that only what is live is shown."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from drivefeed.catalog.listing import has_live, live_rounds, org_named, places_of
from drivefeed.domain.errors import Part, PartDown
from drivefeed.indexer.search import snippet
from drivefeed.ports import Point, SearchFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drivefeed.catalog.engine import Catalog
    from drivefeed.indexer.search import Searcher

LONGEST_QUERY = 500
"""Characters; a longer text is no question, and would not fit into an address."""


@dataclass(frozen=True, slots=True)
class Found:
    """A document that answers a query, by its best chunk.

    Attributes:
        highlights: ranges (start, end) in ``snippet`` of the words that match the query.
    """

    score: float
    path: str
    page: int
    snippet: str
    highlights: tuple[tuple[int, int], ...]
    document_id: str
    import_id: str
    round: int
    chunk: int
    web_url: str | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


async def find(
    catalog: Catalog,
    searcher: Searcher,
    query: str,
    *,
    org_name: str | None = None,
    limit: int = 10,
) -> list[Found]:
    """Search what an org imported; with one org in the catalog, its name may be left out.

    Raises:
        NotFound: there is no such org, or there are several and none was named.
        PartDown: the index does not answer, or lost what it held.
    """
    org_id = await org_named(catalog, org_name)

    async def keep(points: Sequence[Point]) -> set[tuple[str, int]]:
        return await live_rounds(catalog, org_id, {point.document_id for point in points})

    hits = await searcher.search(query, SearchFilter(org_id), limit, keep=keep, per_document=1)
    if not hits and await has_live(catalog, org_id) and await searcher.holds_nothing(org_id):
        raise PartDown(
            "The index holds nothing, though documents were indexed: its folder was moved, emptied "
            "or damaged. 'drivefeed reindex --anew' builds it from the copies in the store; with "
            "--org for an organization that has an embedding of its own.",
            part=Part.INDEX,
        )
    places = await places_of(catalog, org_id, {hit.point.document_id for hit in hits})
    pieces = [snippet(hit.point.text, query) for hit in hits]
    return [
        Found(
            score=hit.score,
            path=place.path if place else hit.point.name,
            page=hit.point.page,
            snippet=piece.text,
            highlights=piece.highlights,
            document_id=hit.point.document_id,
            import_id=hit.point.import_id,
            round=hit.point.round,
            chunk=hit.point.chunk,
            web_url=place.web_url if place else None,
        )
        for hit, piece in zip(hits, pieces, strict=True)
        for place in [places.get(hit.point.document_id)]
    ]
