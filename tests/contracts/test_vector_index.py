"""What every vector index promises, whichever engine is behind it.

A Qdrant server is asked when ``QDRANT_URL`` names one (``QDRANT_API_KEY`` if it wants a key).
Without one, its adapter runs on qdrant-client's local mode, which is an imitation of the server.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.vectors.edge import EdgeIndex
from drivefeed.indexer.vectors.server import ServerIndex
from drivefeed.ports import Point, SearchFilter, VectorIndex

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")

SPACE = uuid.UUID("6c6f9f2e-8f0d-4c55-9c4e-0d2f6d3b7a11")
MODEL = "made-up-4"
ORG = SearchFilter(org_id="org-a")

Open = Callable[..., VectorIndex]
ENGINES = ["edge", "local", *(["server"] if os.environ.get("QDRANT_URL") else [])]


def point(chunk: int = 0, vector: tuple[float, ...] = (1, 0, 0, 0), **changes: object) -> Point:
    made = Point(
        point_id="",
        vector=vector,
        text="plain words",
        org_id="org-a",
        document_id="doc-1",
        import_id="imp-1",
        round=1,
        seq=1,
        chunk=chunk,
        page=1,
        name="report.pdf",
        media_type="application/pdf",
        folders=("root", "sub"),
        live=True,
    )
    made = replace(made, **changes)  # type: ignore[arg-type]
    key = f"{made.import_id}/{made.round}/{made.chunk}"
    return replace(made, point_id=str(uuid.uuid5(SPACE, key)))


@pytest.fixture(params=ENGINES)
async def opened(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Callable[..., VectorIndex]]:
    """Open the same index again and again; everything opened is closed at the end."""
    indexes: list[VectorIndex] = []
    collection = f"contract-{uuid.uuid4()}"

    def open_it(model_name: str = MODEL, dimension: int = 4) -> VectorIndex:
        index: VectorIndex
        if request.param == "edge":
            index = EdgeIndex(tmp_path / "index", model_name=model_name, dimension=dimension)
        elif request.param == "local":
            path = str(tmp_path / "local")
            index = ServerIndex.local(path, model_name=model_name, dimension=dimension)
        else:
            index = ServerIndex(
                os.environ["QDRANT_URL"],
                api_key=os.environ.get("QDRANT_API_KEY"),
                collection=collection,
                model_name=model_name,
                dimension=dimension,
            )
        indexes.append(index)
        return index

    yield open_it
    for index in indexes:
        await index.aclose()
    if request.param == "server":
        await _drop(collection)


async def _drop(collection: str) -> None:
    from qdrant_client import AsyncQdrantClient

    client = AsyncQdrantClient(
        url=os.environ["QDRANT_URL"], api_key=os.environ.get("QDRANT_API_KEY")
    )
    await client.delete_collection(collection)
    await client.close()


@pytest.fixture
def index(opened: Open) -> VectorIndex:
    return opened()


async def ids(index: VectorIndex, text: str, where: SearchFilter = ORG, limit: int = 10) -> list:
    hits = await index.search(vector=(1, 0, 0, 0), text=text, where=where, limit=limit)
    return [hit.point.chunk for hit in hits]


async def every_round(index: VectorIndex) -> list[tuple[str, int, bool, int]]:
    return [row async for row in index.rounds()]


async def test_an_empty_index_answers(index: VectorIndex) -> None:
    await index.check()
    assert await index.count() == 0
    assert await every_round(index) == []
    assert await ids(index, "anything") == []
    await index.upsert([])
    assert await index.count() == 0


async def test_a_point_comes_back_as_it_was_written_but_for_its_vector(index: VectorIndex) -> None:
    written = point(chunk=3, page=7, seq=5, round=2, text="Zwei Wörter", folders=("r", "s", "t"))
    await index.upsert([written])
    (hit,) = await index.search(vector=(1, 0, 0, 0), text="Wörter", where=ORG, limit=5)
    assert hit.point == replace(written, vector=())


async def test_the_same_id_replaces(index: VectorIndex) -> None:
    await index.upsert([point(text="old zebra")])
    await index.upsert([point(text="new giraffe", vector=(0, 1, 0, 0))])
    assert await index.count() == 1
    (hit,) = await index.search(vector=(1, 0, 0, 0), text="zebra", where=ORG, limit=5)
    assert hit.point.text == "new giraffe"


async def test_a_replaced_text_leaves_no_words_behind(index: VectorIndex) -> None:
    await index.upsert([point(0, text="old zebra"), point(1, (0.9, 0.1, 0, 0), text="nothing")])
    await index.upsert([point(0, (0, 1, 0, 0), text="new giraffe")])
    # If "zebra" still led to chunk 0, it would be first by the words.
    assert await ids(index, "zebra") == [1, 0]


async def test_counts_are_exact_per_round_and_in_all(index: VectorIndex) -> None:
    await index.upsert([point(chunk) for chunk in range(7)])
    await index.upsert([point(chunk, round=2) for chunk in range(3)])
    await index.upsert([point(chunk, import_id="imp-2") for chunk in range(2)])
    assert await index.count() == 12
    assert await index.count(import_id="imp-1") == 10
    assert await index.count(import_id="imp-1", round_=2) == 3
    assert await index.count(import_id="imp-2", round_=1) == 2
    assert await index.count(import_id="imp-3", round_=1) == 0


async def test_only_live_points_are_found_unless_asked_otherwise(index: VectorIndex) -> None:
    await index.upsert([point(0, live=True), point(1, round=2, live=False)])
    assert await ids(index, "plain") == [0]
    assert await ids(index, "plain", replace(ORG, live=False)) == [1]
    assert sorted(await ids(index, "plain", replace(ORG, live=None))) == [0, 1]


async def test_going_live_is_one_update_of_a_round(index: VectorIndex) -> None:
    await index.upsert([point(chunk, live=False) for chunk in range(5)])
    await index.upsert([point(9, round=2, live=False)])
    assert await ids(index, "plain") == []
    assert await index.set_live(import_id="imp-1", round_=1, live=True) == 5
    assert sorted(await ids(index, "plain")) == [0, 1, 2, 3, 4]
    assert await index.set_live(import_id="imp-1", round_=1, live=False) == 5
    assert await ids(index, "plain") == []
    assert await index.set_live(import_id="unknown", round_=1, live=True) == 0


async def test_another_organization_is_never_found(index: VectorIndex) -> None:
    await index.upsert([point(0), point(1, org_id="org-b", import_id="imp-b", text="secret plain")])
    assert await ids(index, "secret plain") == [0]
    assert await ids(index, "secret", SearchFilter(org_id="org-b")) == [1]
    assert await ids(index, "secret", SearchFilter(org_id="")) == []


async def test_folders_media_types_and_documents_filter(index: VectorIndex) -> None:
    await index.upsert(
        [
            point(0, document_id="d0", folders=("root", "x"), media_type="text/plain"),
            point(1, document_id="d1", folders=("root", "y"), media_type="text/html"),
            point(2, document_id="d2", folders=(), media_type="text/csv"),
        ]
    )
    found = {
        name: sorted(await ids(index, "plain", replace(ORG, **where)))
        for name, where in {
            "root": {"folders": ("root",)},
            "x or y": {"folders": ("x", "y")},
            "z": {"folders": ("z",)},
            "types": {"media_types": ("text/html", "text/csv")},
            "document": {"document_id": "d2"},
            "both": {"folders": ("root",), "media_types": ("text/html",)},
        }.items()
    }
    assert found == {
        "root": [0, 1],
        "x or y": [0, 1],
        "z": [],
        "types": [1, 2],
        "document": [2],
        "both": [1],
    }


async def test_a_move_changes_name_and_folders_of_all_rounds_alone(index: VectorIndex) -> None:
    await index.upsert([point(0, text="zebra"), point(1, round=2), point(2, document_id="other")])
    count = await index.set_folders(document_id="doc-1", name="neu 📄.pdf", folders=("root", "y"))
    assert count == 2
    assert sorted(await ids(index, "plain", replace(ORG, folders=("y",)))) == [0, 1]
    assert await ids(index, "plain", replace(ORG, folders=("sub",))) == [2]
    hits = await index.search(vector=(1, 0, 0, 0), text="zebra", where=ORG, limit=3)
    assert hits[0].point.name == "neu 📄.pdf"
    assert hits[0].point.folders == ("root", "y")
    assert hits[0].point.text == "zebra"
    assert await index.set_folders(document_id="unknown", name="n", folders=()) == 0


async def test_removing_a_round_leaves_the_others(index: VectorIndex) -> None:
    await index.upsert([point(chunk) for chunk in range(4)])
    await index.upsert([point(chunk, round=2) for chunk in range(2)])
    assert await index.remove(import_id="imp-1", round_=1) == 4
    assert await index.remove(import_id="imp-1", round_=1) == 0
    assert await index.count() == 2
    assert await every_round(index) == [("imp-1", 2, True, 2)]


async def test_what_an_organization_has_is_told_and_removed_alone(index: VectorIndex) -> None:
    mine = [point(chunk) for chunk in range(2)]
    theirs = [point(chunk, import_id="imp-2", org_id="org-b", live=False) for chunk in range(3)]
    await index.upsert(mine + theirs)
    told = [row async for row in index.rounds(org_id="org-b")]
    assert told == [("imp-2", 1, False, 3)]
    assert [row async for row in index.rounds(org_id="nobody")] == []
    assert await index.remove_of(org_id="org-b") == 3
    assert await index.remove_of(org_id="org-b") == 0
    assert await every_round(index) == [("imp-1", 1, True, 2)]


async def test_a_rare_word_is_found_though_its_meaning_is_far(index: VectorIndex) -> None:
    crowd = [point(chunk, (1, chunk / 1000, 0, 0)) for chunk in range(200)]
    await index.upsert([*crowd, point(900, (0, 0, 0, 1), text="the quixotryl words")])
    assert (await ids(index, "quixotryl", limit=5))[:2] == [900, 0]
    assert 900 not in await ids(index, "absent", limit=5)


async def test_a_meaning_is_found_without_a_common_word(index: VectorIndex) -> None:
    await index.upsert(
        [point(0, (0, 0, 1, 0), text="kitten"), point(1, (1, 0.1, 0, 0), text="dog")]
    )
    assert await ids(index, "puppy", limit=1) == [1]


async def test_what_both_rankings_like_wins(index: VectorIndex) -> None:
    await index.upsert(
        [
            point(0, (1, 0, 0, 0), text="nothing of it"),
            point(1, (0.95, 0.3, 0, 0), text="the quixotryl"),
            point(2, (0, 0, 0, 1), text="a quixotryl among many other words"),
        ]
    )
    hits = await index.search(vector=(1, 0, 0, 0), text="quixotryl", where=ORG, limit=3)
    assert hits[0].point.chunk == 1
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] > scores[1] > 0


async def test_equal_points_come_in_the_same_order_each_time(index: VectorIndex) -> None:
    points = [point(chunk) for chunk in range(30)]
    await index.upsert(points[15:])
    await index.upsert(points[:15])
    expected = [p.chunk for p in sorted(points, key=lambda p: p.point_id)]
    assert await ids(index, "plain", limit=30) == expected
    assert await ids(index, "plain", limit=10) == expected[:10]


async def test_the_limit_is_kept_and_fewer_hits_mean_no_more(index: VectorIndex) -> None:
    await index.upsert([point(chunk, (1, chunk / 100, 0, 0)) for chunk in range(300)])
    for limit in (0, 1, 7, 150, 299, 300, 301):
        assert len(await ids(index, "plain", limit=limit)) == min(limit, 300)


SPELLINGS = [
    ("Die Übergrößenträger kommen", "übergrößenträger"),
    ("Eine lange Straße", "STRASSE"),
    ("un café noir", "cafe"),
    ("un cafe\u0301 noir", "café"),
    ("the \ufb01nancial plan", "financial"),
    ("Budget Q3-2024, v1.2", "2024"),
    ("they were running", "run"),
]


async def test_words_match_across_spellings(index: VectorIndex) -> None:
    for number, (text, _) in enumerate(SPELLINGS):
        org = {"org_id": f"org-{number}", "import_id": f"imp-{number}"}
        near, far = point(0, (1, 0, 0, 0), **org), point(1, (0, 0, 0, 1), text=text, **org)
        await index.upsert([near, far])
    found = {}
    for number, (_, query) in enumerate(SPELLINGS):
        where = SearchFilter(org_id=f"org-{number}")
        # By meaning alone, chunk 0 would be first.
        found[query] = (await ids(index, query, where))[0]
    assert found == {query: 1 for _, query in SPELLINGS}


async def test_any_text_can_be_written_and_searched(index: VectorIndex) -> None:
    texts = ["", "   ", "nul \0 inside", "🦓 emoji", "\u202ertl", "lone \ud800 half", "x" * 100_000]
    await index.upsert([point(chunk, text=text) for chunk, text in enumerate(texts)])
    for query in [*texts, "the of and", "\n"]:
        assert len(await ids(index, query)) == len(texts)
    hits = await index.search(vector=(1, 0, 0, 0), text="", where=ORG, limit=10)
    found = {hit.point.chunk: hit.point.text for hit in hits}
    assert found[2] == "nul \0 inside"
    assert found[3] == "🦓 emoji"
    assert found[5] == "lone \ufffd half"


async def test_a_vector_of_another_length_is_refused_before_anything_is_written(
    index: VectorIndex,
) -> None:
    with pytest.raises(ValueError, match="5 numbers"):
        await index.upsert([point(0), point(1, (1, 0, 0, 0, 0))])
    with pytest.raises(ValueError, match="3 numbers"):
        await index.search(vector=(1, 0, 0), text="x", where=ORG, limit=1)
    assert await index.count() == 0


async def test_two_thousand_points(index: VectorIndex) -> None:
    points = [
        point(
            number,
            (1, number / 1000, 0, 0),
            import_id=f"imp-{number // 100:02}",
            text=f"number n{number} of many",
            live=number % 200 < 100,
        )
        for number in range(2_000)
    ]
    await index.upsert(points)
    assert await index.count() == 2_000
    assert await every_round(index) == [
        (f"imp-{number:02}", 1, number % 2 == 0, 100) for number in range(20)
    ]
    assert 1_234 in await ids(index, "n1234", limit=10)
    assert 1_334 not in await ids(index, "n1334", limit=10)
    assert await index.remove(import_id="imp-07", round_=1) == 100
    assert await index.count() == 1_900


async def test_searches_and_writes_at_the_same_time(index: VectorIndex) -> None:
    async def write(worker: int) -> None:
        for turn in range(5):
            first = 10 * turn
            name = f"imp-{worker}"
            await index.upsert([point(first + n, import_id=name, live=False) for n in range(10)])
        assert await index.set_live(import_id=f"imp-{worker}", round_=1, live=True) == 50

    async def read() -> None:
        for _ in range(10):
            hits = await index.search(vector=(1, 0, 0, 0), text="plain", where=ORG, limit=20)
            assert len(hits) <= 20
            assert all(hit.point.live for hit in hits)
            assert await index.count() <= 500

    work: list[Awaitable[None]] = [write(n) for n in range(10)] + [read() for _ in range(10)]
    await asyncio.gather(*work)
    assert await index.count() == 500
    assert await every_round(index) == [(f"imp-{n}", 1, True, 50) for n in range(10)]


async def test_everything_is_there_when_it_is_opened_again(opened: Open) -> None:
    first = opened()
    await first.upsert([point(chunk, text=f"word{chunk}") for chunk in range(20)])
    await first.set_live(import_id="imp-1", round_=1, live=False)
    await first.set_folders(document_id="doc-1", name="new.txt", folders=("moved",))
    await first.aclose()
    second = opened()
    assert await every_round(second) == [("imp-1", 1, False, 20)]
    where = SearchFilter(org_id="org-a", live=False, folders=("moved",))
    hits = await second.search(vector=(1, 0, 0, 0), text="word7", where=where, limit=1)
    assert hits[0].point.text == "word7"
    assert hits[0].point.name == "new.txt"


@pytest.mark.parametrize(
    ("model_name", "dimension", "named"),
    [("another-model", 4, "another-model"), (MODEL, 8, "dimension 4")],
)
async def test_another_model_is_refused_with_a_sentence(
    opened: Open, model_name: str, dimension: int, named: str
) -> None:
    first = opened()
    await first.upsert([point()])
    await first.aclose()
    other = opened(model_name=model_name, dimension=dimension)
    with pytest.raises(NeedsAttention, match=named) as caught:
        await other.check()
    assert caught.value.reason is Reason.MISCONFIGURED
    with pytest.raises(NeedsAttention):
        await other.count()
    await other.aclose()
    again = opened()
    assert await again.count() == 1


async def test_both_engines_rank_alike(tmp_path: Path) -> None:
    points = [
        point(n, (1, (n * 37 % 101) / 50, (n * 53 % 97) / 50, 0), text=f"w{n % 7} w{n % 11} w{n}")
        for n in range(150)
    ]
    edge = EdgeIndex(tmp_path / "edge", model_name=MODEL, dimension=4)
    local = ServerIndex.local(":memory:", model_name=MODEL, dimension=4)
    try:
        for index in (edge, local):
            await index.upsert(points)
        for query in ("w3 w5", "w42", "nothing"):
            assert await ids(edge, query) == await ids(local, query)
    finally:
        await edge.aclose()
        await local.aclose()


async def test_dropped_it_is_empty_when_it_is_opened_again(
    opened: Callable[..., VectorIndex],
) -> None:
    index = opened()
    await index.upsert([point()])
    await index.drop()
    again = opened("another-8", 8)
    assert await again.count() == 0
    await again.drop()
    await opened("never opened").drop()
