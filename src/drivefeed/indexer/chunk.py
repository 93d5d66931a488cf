"""Pages cut into chunks that the embedding model takes whole.

Sizes are counted with the model's own tokenizer where it is here, for limits in characters overrun
badly on tables, code and languages other than English.
"""

from __future__ import annotations

import asyncio
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from drivefeed.indexer.model import Chunk, Chunking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tokenizers import Tokenizer

    from drivefeed.indexer.model import Page
    from drivefeed.ports import Embedder

MAX_TOKENS: Final = 254
"""What the local English model takes: trained on 256, two of which mark beginning and end."""
# A page is split in pieces of this many characters. The splitter's work grows with the square of
# what has no spaces (60,000 characters took 7.8 s whole, and 2.9 s in pieces), a huge sheet is not
# split in full when the limit of chunks is reached in its first part, and one can stop in between.
_PIECE_CHARACTERS: Final = 20_000
# The tokenizer turns any word over 100 characters into one unknown token, so by tokens alone a
# megabyte of base64 would be a single chunk.
_CHARACTERS_PER_TOKEN: Final = 8


def chunk_pages(
    pages: Iterable[Page],
    *,
    tokenizer: Tokenizer | Callable[[str], int],
    max_tokens: int = MAX_TOKENS,
    overlap: int = 32,
    max_chunks: int = 5_000,
    is_unwanted: Callable[[], bool] = lambda: False,
) -> Chunking:
    """Cut pages into chunks at the largest boundaries that fit: paragraphs, sentences, words.

    This is processor work (about half a megabyte of text a second) that releases the GIL: run it
    in a thread.

    Args:
        pages: In order; a chunk never spans two of them.
        tokenizer: The model's, with neither truncation nor padding; or what counts tokens.
        max_tokens: Most tokens of a chunk, the model's own marks not counted.
        overlap: Tokens that a chunk may repeat from the one before it on the same page.
        max_chunks: Most chunks; the text behind them is left out.
        is_unwanted: Asked now and then; once true, the rest is left out.
    """
    splitter = _splitter(tokenizer, max_tokens, overlap)
    longest = max_tokens * _CHARACTERS_PER_TOKEN
    chunks: list[Chunk] = []
    for page in pages:
        for start, text in _split(splitter, page.text, longest):
            if len(chunks) == max_chunks or is_unwanted():
                return Chunking(tuple(chunks), truncated=True)
            chunks.append(Chunk(len(chunks), page.number, text, start, start + len(text)))
    return Chunking(tuple(chunks), truncated=False)


async def chunked(
    pages: Sequence[Page], embedder: Embedder, *, max_chunks: int
) -> tuple[Chunk, ...]:
    """Cut pages into chunks for an embedding, in a thread; see :func:`chunk_pages`."""
    # A thread cannot be cancelled, and a process that ends waits for it.
    is_left = threading.Event()

    def work() -> Chunking:
        return chunk_pages(
            pages,
            tokenizer=embedder.tokenizer(),
            max_tokens=embedder.max_tokens,
            max_chunks=max_chunks,
            is_unwanted=is_left.is_set,
        )

    try:
        return (await asyncio.to_thread(work)).chunks
    finally:
        is_left.set()


@lru_cache(maxsize=4)
def _splitter(tokenizer: Tokenizer | Callable[[str], int], max_tokens: int, overlap: int) -> Any:
    # It takes a copy of the tokenizer's vocabulary, which costs more than a short text does.
    from semantic_text_splitter import TextSplitter

    if callable(tokenizer):
        return TextSplitter.from_callback(tokenizer, max_tokens, overlap)
    return TextSplitter.from_huggingface_tokenizer(tokenizer, max_tokens, overlap)


def _split(splitter: Any, text: str, longest: int) -> Iterator[tuple[int, str]]:
    for begin, piece in _pieces(text):
        for offset, chunk in splitter.chunk_indices(piece):
            if len(chunk) <= longest:
                yield begin + offset, chunk
                continue
            for cut in range(0, len(chunk), longest):
                for inner, part in splitter.chunk_indices(chunk[cut : cut + longest]):
                    yield begin + offset + cut + inner, part


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while start < len(text):
        end = min(len(text), start + _PIECE_CHARACTERS)
        if end < len(text):
            end = max(text.rfind("\n", start, end), text.rfind(" ", start, end), start) + 1
            if end == start + 1:
                end = start + _PIECE_CHARACTERS
        yield start, text[start:end]
        start = end
