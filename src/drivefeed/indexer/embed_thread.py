"""A model in this process, in one thread of its own: what such embedders share."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self


class ThreadEmbedder(ABC):
    """Runs a model one text at a time; the model is loaded for the first one.

    Args:
        threads: Threads that the model may use for one text.
    """

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

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts.

        A query waits for one text at most, not for the whole call. Cancelling stops after the text
        that is being worked on.

        Raises:
            ModelFilesError: The model can't be loaded.
        """
        return [await self._embed(text) for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        """Embed a query; for these models the same as a document.

        Raises:
            ModelFilesError: The model can't be loaded.
        """
        return await self._embed(text)

    async def check(self) -> None:
        """Embed a word, which loads the model.

        Raises:
            ModelFilesError: The model can't be loaded.
        """
        await self._embed("word")

    async def aclose(self) -> None:
        """Let the model go; running work is finished first."""
        await asyncio.to_thread(self._executor.shutdown, cancel_futures=True)
        self._model = None

    async def _embed(self, text: str) -> list[float]:
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._run, text)

    @abstractmethod
    def _run(self, text: str) -> list[float]:
        """Embed one text, in the thread; load the model if it is not there yet."""
