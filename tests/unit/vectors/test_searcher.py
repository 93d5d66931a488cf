"""The searcher over a real index; the embedding is made up, so that distances are known."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from drivefeed.indexer.collection import Collection
from drivefeed.indexer.library import Library
from drivefeed.indexer.search import Searcher
from drivefeed.indexer.shelf import Shelf
from drivefeed.indexer.vectors.edge import EdgeIndex
from drivefeed.ports import Point, SearchFilter

ORG = SearchFilter(org_id="o")


class TwoNumbers:
    name = "two-numbers"
    dimension = 2

    async def embed_query(self, text: str) -> list[float]:
        assert text.strip(), "a blank query must not reach the model"
        return [1.0, 0.0]


def points(import_id: str, count: int, *, nearness: float, document: str = "d") -> list[Point]:
    return [
        Point(
            point_id=str(UUID(int=hash_of(import_id) * 10_000 + number)),
            vector=(nearness, 1 - nearness + number / 10_000),
            text="text",
            org_id="o",
            document_id=document,
            import_id=import_id,
            round=1,
            seq=1,
            chunk=number,
            page=1,
            name="n",
            media_type="text/plain",
            folders=(),
            live=True,
        )
        for number in range(count)
    ]


def searcher_of(index: EdgeIndex) -> Searcher:
    return Searcher(Library(Shelf(Collection("index", TwoNumbers(), index))))


def hash_of(name: str) -> int:
    return int.from_bytes(name.encode(), "big")


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[EdgeIndex]:
    index = EdgeIndex(tmp_path, model_name="two-numbers", dimension=2)
    yield index
    await index.aclose()


async def test_a_blank_query_finds_nothing(index: EdgeIndex) -> None:
    await index.upsert(points("a", 3, nearness=0.9))
    searcher = searcher_of(index)
    assert await searcher.search(" \n", ORG, 5) == []
    assert await searcher.search("x", ORG, 0) == []
    assert len(await searcher.search("x", ORG, 5)) == 3


async def test_it_looks_further_until_enough_hits_are_live(index: EdgeIndex) -> None:
    await index.upsert(points("old", 500, nearness=0.9))
    await index.upsert(points("new", 8, nearness=0.1))
    asked: list[int] = []

    async def keep(found: Sequence[Point]) -> set[tuple[str, int]]:
        asked.append(len(found))
        return {("new", 1)}

    hits = await searcher_of(index).search("x", ORG, 5, keep=keep)
    assert [hit.point.import_id for hit in hits] == ["new"] * 5
    assert asked == sorted(asked)
    assert len(asked) > 1


async def test_it_stops_when_there_is_no_more(index: EdgeIndex) -> None:
    await index.upsert(points("old", 30, nearness=0.9) + points("new", 2, nearness=0.1))

    async def keep(found: Sequence[Point]) -> set[tuple[str, int]]:
        return {("new", 1), ("old", 2)}

    hits = await searcher_of(index).search("x", ORG, 5, keep=keep)
    assert [hit.point.import_id for hit in hits] == ["new", "new"]


async def test_one_document_does_not_fill_the_page(index: EdgeIndex) -> None:
    for number, document in enumerate("abc"):
        near = 0.9 - number / 10
        await index.upsert(points(document, 40, nearness=near, document=document))
    hits = await searcher_of(index).search("x", ORG, 6, per_document=2)
    assert [hit.point.document_id for hit in hits] == ["a", "a", "b", "b", "c", "c"]
