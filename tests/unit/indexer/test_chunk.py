from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drivefeed.indexer.chunk import MAX_TOKENS, chunk_pages
from drivefeed.indexer.embed import load_tokenizer
from drivefeed.indexer.model import Page

if TYPE_CHECKING:
    from tokenizers import Tokenizer


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
