"""Sparse vectors by BM25, computed by the encoder that ships with Qdrant Edge.

It works without a shard, needs no download, and is the same for both engines, so that an index
answers alike whether it lives in a folder or on a server. Words are lower-cased and folded to
ASCII (``café`` = ``cafe``, ``Straße`` = ``strasse``) and stemmed by the rules of English, which
leaves most words of other languages as they are. Text is normalised to NFKC first: PDF files are
full of ligatures, and macOS names and texts of decomposed accents.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Final

from drivefeed.indexer.vectors.payload import clean

ENCODER: Final = "bm25-english-folded-1"
"""Name of the tokenisation; an index remembers it, because another would find nothing in it."""

Sparse = tuple[list[int], list[float]]
"""Hashes of words, and a weight for each."""


class Bm25:
    """Encodes chunks and queries; both calls take well under a millisecond of CPU."""

    def __init__(self) -> None:
        import qdrant_edge

        self._encoder: Any = qdrant_edge.Bm25(
            qdrant_edge.Bm25Config(language="english", ascii_folding=True)
        )

    def document(self, text: str) -> Sparse:
        """Return the weights of a chunk; empty if it has no words."""
        vector = self._encoder.embed_document(_normalised(text))
        return list(vector.indices), list(vector.values)

    def query(self, text: str) -> Sparse:
        """Return weight 1 for each word of a query; empty if only stop words are in it."""
        vector = self._encoder.embed_query(_normalised(text))
        return list(vector.indices), list(vector.values)


def _normalised(text: str) -> str:
    return unicodedata.normalize("NFKC", clean(text))
