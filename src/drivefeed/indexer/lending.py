"""Embedders that are lent to many: whoever wants the same gets the same.

A model of this machine is in memory once, however many organizations use it, and requests to a
service for documents take turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tokenizers import Tokenizer

    from drivefeed.indexer.providers import EmbeddingChoice
    from drivefeed.ports import Embedder


@dataclass(slots=True)
class _Owned:
    embedder: Embedder
    borrowers: int = 0


class Lending:
    """All embedders of a process.

    Args:
        make: makes one; nothing is loaded and nobody asked before its first use.
    """

    def __init__(self, make: Callable[[EmbeddingChoice], Embedder]) -> None:
        self._make = make
        self._owned: dict[EmbeddingChoice, _Owned] = {}

    @property
    def loaded(self) -> int:
        """How many models are in the memory of this process."""
        return sum(one.embedder.loaded for one in self._owned.values())

    def lend(self, choice: EmbeddingChoice) -> Embedder:
        """Return what was chosen; it is let go when the last borrower has closed it.

        Raises:
            NeedsAttention: the choice lacks something.
        """
        owned = self._owned.get(choice)
        if owned is None:
            owned = self._owned[choice] = _Owned(self._make(choice))
        owned.borrowers += 1
        return Lent(owned.embedder, lambda: self._take_back(choice))

    def _take_back(self, choice: EmbeddingChoice) -> Embedder | None:
        owned = self._owned[choice]
        owned.borrowers -= 1
        return None if owned.borrowers else self._owned.pop(choice).embedder


class Lent:
    """An :class:`~drivefeed.ports.Embedder` that somebody else may use too."""

    def __init__(self, embedder: Embedder, give_back: Callable[[], Embedder | None]) -> None:
        self._embedder = embedder
        self._give_back = give_back
        self._is_closed = False

    @property
    def provider(self) -> str:
        """Return who runs the model."""
        return self._embedder.provider

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """Return how many numbers a vector has."""
        return self._embedder.dimension

    @property
    def max_tokens(self) -> int:
        """Return the most tokens of a text that is embedded whole."""
        return self._embedder.max_tokens

    @property
    def loaded(self) -> bool:
        """Whether a model is in the memory of this process."""
        return self._embedder.loaded

    def tokenizer(self) -> Tokenizer | Callable[[str], int]:
        """Return what counts the tokens of a text; call it in a thread."""
        return self._embedder.tokenizer()

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts to be found, one vector for each, in order.

        Raises:
            Throttled, Transient, PartDown, NeedsAttention: as their docstrings say.
        """
        return await self._embedder.embed_documents(texts)

    async def embed_query(self, text: str) -> list[float]:
        """Embed what somebody searches for.

        Raises:
            Throttled, Transient, PartDown, NeedsAttention: as their docstrings say.
        """
        return await self._embedder.embed_query(text)

    async def check(self) -> None:
        """Embed a word.

        Raises:
            PartDown, NeedsAttention: with a sentence that says what is wrong.
        """
        await self._embedder.check()

    async def aclose(self) -> None:
        """Give it back; the last one lets it go."""
        if not self._is_closed:
            self._is_closed = True
            last = self._give_back()
            if last is not None:
                await last.aclose()
