"""An embedding service that misbehaves: what is waited for, what is said, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain.errors import (
    DrivefeedError,
    NeedsAttention,
    Part,
    PartDown,
    Throttled,
    Transient,
)
from drivefeed.indexer.providers import EmbeddingChoice, open_embedder
from support.embeddings import KEY, EmbeddingService, Fault, embedding_service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from drivefeed.ports import Embedder

TEXT = "The salary of the managing director is to be kept to ourselves, whatever happens."


class Impatient:
    """A clock on which waiting takes no time; it remembers how long it should have."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> int:
        return 0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with embedding_service() as running:
        yield running


@pytest.fixture
def clock() -> Impatient:
    return Impatient()


def embedder_for(service: EmbeddingService, clock: Impatient, **more: Any) -> Embedder:
    wanted: dict[str, Any] = {
        "provider": "openai",
        "model": "words",
        "base_url": f"{service.url}/v1",
        "api_key": KEY,
        "dimension": service.dimension,
        **more,
    }
    return open_embedder(EmbeddingChoice(**wanted), threads=1, clock=clock)


@pytest.fixture
async def embedder(service: EmbeddingService, clock: Impatient) -> AsyncIterator[Embedder]:
    one = embedder_for(service, clock)
    yield one
    await one.aclose()


async def refused(embedder: Embedder) -> DrivefeedError:
    with pytest.raises(DrivefeedError) as caught:
        await embedder.embed_documents([TEXT])
    words = str(caught.value)
    assert KEY not in words
    assert "salary" not in words
    assert words.endswith((".", "!"))
    return caught.value


async def test_texts_go_in_requests_of_a_size(service: EmbeddingService, clock: Impatient) -> None:
    embedder = embedder_for(service, clock, batch=4)
    vectors = await embedder.embed_documents([f"text {number}" for number in range(10)])
    assert len(vectors) == 10
    assert [len(body["input"]) for _, body in service.requests] == [4, 4, 2]
    await embedder.aclose()


async def test_it_waits_as_long_as_it_is_asked_to(
    embedder: Embedder, service: EmbeddingService, clock: Impatient
) -> None:
    service.faults = [Fault(429, retry_after="7"), Fault(429, retry_after="11")]
    assert len(await embedder.embed_documents([TEXT])) == 1
    assert clock.slept == [7.0, 11.0]


async def test_a_long_wait_is_left_to_the_queue(
    embedder: Embedder, service: EmbeddingService, clock: Impatient
) -> None:
    service.faults = [Fault(429, retry_after="300")]
    error = await refused(embedder)
    assert isinstance(error, Throttled)
    assert error.seconds == 300
    assert clock.slept == []


async def test_a_query_does_not_wait_long(
    embedder: Embedder, service: EmbeddingService, clock: Impatient
) -> None:
    service.faults = [Fault(429, retry_after="7")]
    with pytest.raises(Throttled):
        await embedder.embed_query("words")
    assert clock.slept == []


@pytest.mark.parametrize("fault", [Fault(500), Fault(503, body="<html>"), Fault(cut=True)])
async def test_what_passes_is_tried_again(
    embedder: Embedder, service: EmbeddingService, clock: Impatient, fault: Fault
) -> None:
    service.faults = [fault]
    assert len(await embedder.embed_documents([TEXT])) == 1
    assert len(clock.slept) == 1


async def test_a_service_that_stays_down_opens_the_breaker_of_the_index(
    embedder: Embedder, service: EmbeddingService
) -> None:
    service.faults = [Fault(500)] * 3
    error = await refused(embedder)
    assert isinstance(error, PartDown)
    assert error.part is Part.INDEX
    assert "HTTP 500" in str(error)


async def test_a_service_that_is_not_there(service: EmbeddingService, clock: Impatient) -> None:
    embedder = embedder_for(service, clock, base_url="http://127.0.0.1:9/v1")
    error = await refused(embedder)
    assert isinstance(error, PartDown)
    assert "http://127.0.0.1:9/v1/embeddings did not answer" in str(error)


async def test_a_slow_service_is_not_waited_for_without_end(
    service: EmbeddingService, clock: Impatient
) -> None:
    service.faults = [Fault(slow=0.4)] * 3
    embedder = embedder_for(service, clock, timeout_seconds=0.1)
    assert isinstance(await refused(embedder), PartDown)
    await embedder.aclose()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"api_key": "wrong"}, "Check 'api_key' of the embedding, in the settings"),
        ({"model": "absent"}, "Check 'base_url' or 'model' of the embedding, in the settings"),
        ({"dimension": 65}, "vectors of 64 numbers, but 65 are expected"),
    ],
)
async def test_what_only_a_person_can_repair(
    service: EmbeddingService, clock: Impatient, more: dict[str, Any], words: str
) -> None:
    embedder = embedder_for(service, clock, **more)
    error = await refused(embedder)
    assert isinstance(error, NeedsAttention)
    assert words in str(error)
    assert "wrong" not in str(error)
    await embedder.aclose()


async def test_ollama_says_how_to_get_a_model(service: EmbeddingService, clock: Impatient) -> None:
    embedder = embedder_for(service, clock, provider="ollama", base_url=service.url, model="absent")
    assert "ollama pull absent" in str(await refused(embedder))
    await embedder.aclose()


async def test_an_account_without_quota_is_not_waited_for(
    embedder: Embedder, service: EmbeddingService
) -> None:
    body = {"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}}
    service.faults = [Fault(429, body=body)]
    assert isinstance(await refused(embedder), NeedsAttention)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(422, body={"detail": [{"msg": "bad", "input": TEXT}]}),
        Fault(400, body={"error": {"message": f"cannot read: {TEXT}"}}),
        Fault(400, body=TEXT),
        Fault(400, body={"error": {"message": f"key {KEY} is odd"}}),
        Fault(200, body="no JSON"),
        Fault(200, body={"data": [{"index": 0}]}),
        Fault(200, body={"data": [{"index": 3, "embedding": [1.0]}]}),
        Fault(200, body={"data": [{"index": 0, "embedding": ["NaN"] * 64}]}),
        Fault(count=1),
        Fault(count=-1),
    ],
)
async def test_what_cannot_be_used_repeats_neither_text_nor_key(
    embedder: Embedder, service: EmbeddingService, fault: Fault
) -> None:
    service.faults = [fault]
    assert isinstance(await refused(embedder), Transient)


async def test_a_text_that_is_too_long_is_embedded_by_its_halves(
    embedder: Embedder, service: EmbeddingService
) -> None:
    service.most_characters = 1_000
    long = "alpha " * 300 + "omega " * 300
    vectors = await embedder.embed_documents(["short", long, "short"])
    assert vectors[0] == vectors[2]
    asked = await embedder.embed_query("omega")
    assert sum(a * b for a, b in zip(asked, vectors[1], strict=True)) > 0.5
    assert max(map(len, service.texts[-8:])) <= 3_600


async def test_prefixes_and_dimensions_are_sent_where_they_belong(
    service: EmbeddingService, clock: Impatient
) -> None:
    embedder = embedder_for(
        service, clock, model="intfloat/multilingual-e5-small", dimension=32, shorten=True
    )
    (vector,) = await embedder.embed_documents(["one"])
    await embedder.embed_query("two")
    assert len(vector) == embedder.dimension == 32
    assert service.texts == ["passage: one", "query: two"]
    assert all(body["dimensions"] == 32 for _, body in service.requests)
    await embedder.aclose()


def test_a_model_that_nobody_knows_needs_its_dimension(service: EmbeddingService) -> None:
    with pytest.raises(NeedsAttention, match="Say it as 'dimension' of the embedding"):
        embedder_for(service, Impatient(), dimension=None)
    known = embedder_for(service, Impatient(), model="bge-m3:latest", dimension=None)
    assert known.dimension == 1024
    with pytest.raises(NeedsAttention, match="needs the name of a model"):
        embedder_for(service, Impatient(), model="")


def test_the_key_is_not_shown() -> None:
    assert KEY not in repr(EmbeddingChoice("openai", "words", api_key=KEY))
