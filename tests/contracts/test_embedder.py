"""What every embedder promises, wherever its model runs."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from drivefeed.indexer.chunk import chunk_pages
from drivefeed.indexer.model import Page
from drivefeed.indexer.providers import PROVIDERS, EmbeddingChoice, open_embedder
from drivefeed.system import SystemClock
from support.embeddings import KEY, embedding_service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.ports import Embedder

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENTS = [
    "The invoice must be paid within thirty days of receipt.",
    "Cats sleep for most of the day.",
    "The bridge over the river was closed after the flood.",
]
ODD = ["", " ", "a\0b", "\ud800 lone", "漢字 🎉 ﷽", "x" * 30_000, "word " * 3_000]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PROVIDERS)
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    with embedding_service() as service:
        choice = EmbeddingChoice(
            request.param,
            model="words",
            base_url=service.url + ("/v1" if request.param == "openai" else ""),
            api_key=KEY,
            dimension=service.dimension,
            max_tokens=200,
        )
        one = open_embedder(choice, threads=1, clock=SystemClock())
        assert not one.loaded
        yield one
        await one.aclose()


async def test_it_says_what_it_is(embedder: Embedder) -> None:
    assert embedder.provider in PROVIDERS
    assert embedder.name
    assert embedder.dimension > 0
    assert 16 <= embedder.max_tokens <= 512
    await embedder.check()


async def test_each_text_has_a_vector_of_length_one_in_its_place(embedder: Embedder) -> None:
    vectors = await embedder.embed_documents(DOCUMENTS)
    assert len(vectors) == len(DOCUMENTS)
    for text, vector in zip(DOCUMENTS, vectors, strict=True):
        assert len(vector) == embedder.dimension
        assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-3)
        (alone,) = await embedder.embed_documents([text])
        assert sum(a * b for a, b in zip(alone, vector, strict=True)) > 0.999
    assert await embedder.embed_documents([]) == []


async def test_texts_that_nobody_would_write_have_vectors_too(embedder: Embedder) -> None:
    for vector in await embedder.embed_documents(ODD):
        assert len(vector) == embedder.dimension
        assert all(map(math.isfinite, vector))


async def test_a_query_is_closest_to_what_answers_it(embedder: Embedder) -> None:
    vectors = await embedder.embed_documents(DOCUMENTS)
    asked = await embedder.embed_query("when must the invoice be paid")
    scores = [sum(a * b for a, b in zip(asked, vector, strict=True)) for vector in vectors]
    assert scores.index(max(scores)) == 0


async def test_chunks_by_its_tokenizer_are_no_longer_than_it_takes(embedder: Embedder) -> None:
    counts = await asyncio.to_thread(embedder.tokenizer)
    text = "\n\n".join(f"{one} Größe 12,5 mm; 漢字." for one in DOCUMENTS * 40)
    found = await asyncio.to_thread(
        chunk_pages, [Page(1, text)], tokenizer=counts, max_tokens=embedder.max_tokens, overlap=16
    )
    assert len(found.chunks) > 3
    if callable(counts):
        assert counts("") <= 1
        assert counts("one two") > 1
        assert max(counts(chunk.text) for chunk in found.chunks) <= embedder.max_tokens
