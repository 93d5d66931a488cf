"""An embedder that could not be opened: whoever asks it is told why, and nobody else is."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from drivefeed.domain.errors import NeedsAttention


class Unopened:
    """An :class:`~drivefeed.ports.Embedder` that only says what is missing.

    A collection whose key cannot be opened keeps no process from starting; its documents wait.

    Args:
        error: what is wrong.
    """

    max_tokens = 256
    loaded = False

    def __init__(self, provider: str, name: str, dimension: int, error: NeedsAttention) -> None:
        self.provider = provider
        self.name = name
        self.dimension = dimension
        self._error = error

    def tokenizer(self) -> Callable[[str], int]:
        """Refuse."""
        self._refuse()

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Refuse."""
        del texts
        self._refuse()

    async def embed_query(self, text: str) -> list[float]:
        """Refuse."""
        del text
        self._refuse()

    async def check(self) -> None:
        """Refuse."""
        self._refuse()

    async def aclose(self) -> None:
        """There is nothing to let go."""

    def _refuse(self) -> NoReturn:
        raise type(self._error)(str(self._error), reason=self._error.reason)
