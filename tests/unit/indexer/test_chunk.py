from __future__ import annotations

import asyncio
import threading
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drivefeed.indexer import chunk as room
from drivefeed.indexer.chunk import MAX_TOKENS, chunk_pages
from drivefeed.indexer.embed import load_tokenizer
from drivefeed.indexer.model import Page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tokenizers import Tokenizer

    from drivefeed.ports import Embedder


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return load_tokenizer()


def tokens(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


# Letters of several scripts, digits, marks and blanks: alone, in words, and in runs without a gap.
TEXTS = st.lists(
    st.one_of(
        st.text(max_size=80),
        st.text("abcé漢字かな한국العربية0123456789-/.,;:!?", min_size=1, max_size=600),  # noqa: RUF001 - other scripts on purpose
        st.sampled_from(["\n", "\n\n", " ", ". ", "\t", " | ", "\u200f", "e\u0301", "👩‍👩‍👧"]),
        st.builds(
            lambda s, n: s * n, st.sampled_from(["x", "漢", "ab1", "- ", "é"]), st.integers(1, 3000)
        ),
    ),
    max_size=12,
).map("".join)


@given(text=TEXTS, max_tokens=st.sampled_from([16, 64, MAX_TOKENS]), overlap=st.integers(0, 8))
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_chunk_is_over_the_limit_and_no_character_is_lost(
    tokenizer: Tokenizer, text: str, max_tokens: int, overlap: int
) -> None:
    page = Page(3, text)
    chunking = chunk_pages([page], tokenizer=tokenizer, max_tokens=max_tokens, overlap=overlap)
    covered = [False] * len(text)
    for position, chunk in enumerate(chunking.chunks):
        assert chunk.index == position
        assert chunk.page == 3
        assert page.text[chunk.start : chunk.end] == chunk.text
        assert chunk.text.strip()
        assert tokens(tokenizer, chunk.text) <= max_tokens
        assert len(chunk.text) <= max_tokens * 8
        covered[chunk.start : chunk.end] = [True] * (chunk.end - chunk.start)
    lost = "".join(c for c, seen in zip(text, covered, strict=True) if not seen)
    assert not lost.strip(), "only white space may be between chunks"
    assert not chunking.truncated


def test_with_the_marks_of_the_model_the_limit_fills_its_window(tokenizer: Tokenizer) -> None:
    page = Page(1, "apple " * 2_000)
    chunks = chunk_pages([page], tokenizer=tokenizer, overlap=0).chunks
    assert max(len(tokenizer.encode(chunk.text).ids) for chunk in chunks) == 256


def test_chunks_never_span_pages_and_are_numbered_through(tokenizer: Tokenizer) -> None:
    pages = [Page(1, "one. " * 300), Page(4, "four"), Page(5, "five. " * 300)]
    chunks = chunk_pages(pages, tokenizer=tokenizer).chunks
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.page for chunk in chunks] == sorted(chunk.page for chunk in chunks)
    assert [chunk.text for chunk in chunks if chunk.page == 4] == ["four"]


def test_neighbours_on_a_page_overlap(tokenizer: Tokenizer) -> None:
    text = " ".join(f"word{n}" for n in range(2_000))
    chunks = chunk_pages([Page(1, text)], tokenizer=tokenizer, overlap=32).chunks
    assert all(a.end > b.start for a, b in pairwise(chunks))
    apart = chunk_pages([Page(1, text)], tokenizer=tokenizer, overlap=0).chunks
    assert all(a.end <= b.start for a, b in pairwise(apart))


def test_a_long_run_without_white_space_is_many_chunks(tokenizer: Tokenizer) -> None:
    # The tokenizer sees one unknown word; a chunk of half a megabyte would be of no use to anybody.
    chunks = chunk_pages([Page(1, "x" * 500_000)], tokenizer=tokenizer).chunks
    assert len(chunks) > 200
    assert chunks[-1].end == 500_000


def test_the_number_of_chunks_is_bounded_and_said(tokenizer: Tokenizer) -> None:
    page = Page(1, "A sentence of some words, over and over. " * 20_000)
    chunking = chunk_pages([page, Page(2, "never reached")], tokenizer=tokenizer, max_chunks=50)
    assert len(chunking.chunks) == 50
    assert chunking.truncated
    exact = chunk_pages([Page(1, "one"), Page(2, "two")], tokenizer=tokenizer, max_chunks=2)
    assert not exact.truncated


def test_nothing_makes_no_chunks(tokenizer: Tokenizer) -> None:
    assert chunk_pages([], tokenizer=tokenizer).chunks == ()
    assert chunk_pages([Page(1, " \n ")], tokenizer=tokenizer).chunks == ()


def test_text_without_spaces_takes_work_in_proportion(tokenizer: Tokenizer) -> None:
    """Counted in characters that the tokenizer reads, of which a whole text takes the square."""
    text = ",".join(str(number * 7919) for number in range(6_000))

    def read(length: int) -> int:
        counted = 0

        def count(piece: str) -> int:
            nonlocal counted
            counted += len(piece)
            return len(tokenizer.encode(piece, add_special_tokens=False).ids)

        chunk_pages([Page(1, text[:length])], tokenizer=count)
        return counted

    assert read(40_000) < 2.5 * read(20_000)


def test_what_is_unwanted_is_left_out(tokenizer: Tokenizer) -> None:
    asked = 0

    def is_unwanted() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    page = Page(1, "The mill by the river was built in 1893. " * 2_000)
    found = chunk_pages([page], tokenizer=tokenizer, is_unwanted=is_unwanted)
    assert (len(found.chunks), found.truncated) == (3, True)


class Local:
    """What is asked of an embedder here."""

    max_tokens = MAX_TOKENS

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def tokenizer(self) -> Tokenizer:
        return self._tokenizer


async def test_chunking_ends_with_whoever_wanted_it(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = threading.Event(), threading.Event()
    made: list[int] = []
    split = room._split

    def slowly(*given: Any) -> Iterator[tuple[int, str]]:
        for one in split(*given):
            made.append(one[0])
            begun.set()
            goes_on.wait(20)
            yield one

    monkeypatch.setattr(room, "_split", slowly)
    page = Page(1, "The mill by the river was built in 1893. " * 500)
    embedder = cast("Embedder", Local(tokenizer))
    work = asyncio.create_task(room.chunked([page], embedder, max_chunks=5_000))
    await asyncio.to_thread(begun.wait, 20)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    goes_on.set()
    await asyncio.get_running_loop().shutdown_default_executor()
    assert len(made) == 1


async def test_chunks_of_an_embedder_are_those_of_its_tokenizer(tokenizer: Tokenizer) -> None:
    page = Page(1, "The mill by the river was built in 1893. " * 50)
    found = await room.chunked([page], cast("Embedder", Local(tokenizer)), max_chunks=5_000)
    assert found == chunk_pages([page], tokenizer=tokenizer).chunks
    assert len(found) > 1
