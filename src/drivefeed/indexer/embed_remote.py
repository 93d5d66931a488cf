"""Embedding by a service over HTTP: batches, waiting, and errors as sentences.

What a provider says on the wire is in :mod:`drivefeed.indexer.embed_protocols`. Texts go to the
service in requests of at most `batch`, one request after the other; a query has no turn to wait
for. A request that is refused for now is tried again here for a while, because a file whose
work began anew for every full minute at the service would never end, and cost again each time.
The key is sent in a header and appears in no error and no log.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any, Final

import httpx

from drivefeed.domain.errors import NeedsAttention, Part, PartDown, Throttled, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import redact
from drivefeed.indexer.embed_naming import in_settings
from drivefeed.indexer.embed_refusals import TooLongError, refusal
from drivefeed.indexer.embed_tokens import estimate_tokens
from drivefeed.indexer.vectors.payload import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from drivefeed.indexer.embed_models import Model
    from drivefeed.indexer.embed_naming import Naming
    from drivefeed.indexer.embed_protocols import WireProtocol
    from drivefeed.ports import Clock

DEFAULT_BATCH: Final = 32
_TRIES: Final = 3
_PATIENCE_SECONDS: Final = 60.0
"""How long a request for documents may wait in all before the file's turn is given up."""
_QUERY_PATIENCE_SECONDS: Final = 3.0
_OK: Final = 200


class RemoteEmbedder:
    """An :class:`~drivefeed.ports.Embedder` behind a URL.

    Args:
        protocol: what the service speaks; it holds the key.
        model: what is known of the model.
        base_url: in front of the protocol's paths.
        clock: for waiting.
        open_client: makes the HTTP client, with proxy and certificates as configured.
        batch: the most texts of a request.
        naming: calls what has to be corrected as it was given.
    """

    def __init__(
        self,
        protocol: WireProtocol,
        model: Model,
        *,
        base_url: str,
        clock: Clock,
        open_client: Callable[[], httpx.AsyncClient],
        batch: int = DEFAULT_BATCH,
        naming: Naming = in_settings,
    ) -> None:
        self._protocol = protocol
        self._model = model
        self._url = base_url.rstrip("/") + protocol.path
        self._where = redact(self._url)
        self._clock = clock
        self._open_client = open_client
        self._batch = batch
        self._naming = naming
        self._client: httpx.AsyncClient | None = None
        self._turn = asyncio.Lock()
        self._opening = asyncio.Lock()

    @property
    def provider(self) -> str:
        """Return what the service speaks."""
        return self._protocol.provider

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._model.name

    @property
    def dimension(self) -> int:
        """Return how many numbers a vector has."""
        return self._model.dimension

    @property
    def max_tokens(self) -> int:
        """Return the most tokens of a chunk, as :meth:`tokenizer` counts them."""
        return self._model.chunk_tokens

    @property
    def loaded(self) -> bool:
        """Whether a model is in the memory of this process: never."""
        return False

    def tokenizer(self) -> Callable[[str], int]:
        """Return the estimate of a text's tokens; the model's own tokenizer is not here."""
        return estimate_tokens

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts in requests of ``batch``, waiting up to a minute for each.

        Raises:
            Throttled: the service asks to wait for longer.
            PartDown: it does not answer, or fails.
            NeedsAttention: it refuses the key, has no such model, or answers with other vectors.
            Transient: it refuses the texts, or its answer cannot be read.
        """
        vectors: list[list[float]] = []
        for start in range(0, len(texts), self._batch):
            batch = [
                self._model.document_prefix + text for text in texts[start : start + self._batch]
            ]
            async with self._turn:
                vectors += await self._embed(batch, patience=_PATIENCE_SECONDS)
        return vectors

    async def embed_query(self, text: str) -> list[float]:
        """Embed a query; it fails within a few seconds where the service asks to wait.

        Raises:
            Throttled, PartDown, NeedsAttention, Transient: as for documents.
        """
        asked = [self._model.query_prefix + text]
        (vector,) = await self._embed(asked, patience=_QUERY_PATIENCE_SECONDS)
        return vector

    async def check(self) -> None:
        """Embed a word.

        Raises:
            PartDown, NeedsAttention, Throttled, Transient: with a sentence that says what is wrong.
        """
        await self.embed_query("word")

    async def aclose(self) -> None:
        """Close connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _embed(self, texts: list[str], *, patience: float) -> list[list[float]]:
        try:
            return await self._patiently([clean(text) for text in texts], patience)
        except TooLongError as error:
            return await self._in_parts(texts, error, patience)

    async def _in_parts(
        self, texts: list[str], error: TooLongError, patience: float
    ) -> list[list[float]]:
        """Find the text that is too long, and embed its halves instead.

        The mean of the halves stands for the whole, as it does in models that embed by windows.
        """
        if len(texts) > 1:
            middle = len(texts) // 2
            return [
                *await self._embed(texts[:middle], patience=patience),
                *await self._embed(texts[middle:], patience=patience),
            ]
        (text,) = texts
        middle = len(text) // 2
        if not middle:
            raise Transient(str(error)) from error
        halves = await self._embed([text[:middle]], patience=patience)
        halves += await self._embed([text[middle:]], patience=patience)
        return [_unit([a + b for a, b in zip(*halves, strict=True)])]

    async def _patiently(self, texts: list[str], patience: float) -> list[list[float]]:
        tried = 0
        while True:
            try:
                return await self._once(texts)
            except Throttled as error:
                wait = error.seconds
                if wait > patience:
                    raise
            except PartDown:
                tried += 1
                wait = float(2**tried)
                if tried == _TRIES or wait > patience:
                    raise
            patience -= wait
            await self._clock.sleep(wait)

    async def _once(self, texts: list[str]) -> list[list[float]]:
        client = await self._opened()
        try:
            answer = await client.post(
                self._url,
                json=self._protocol.request(self._model, texts),
                headers=self._protocol.headers(),
            )
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise PartDown(
                f"The embedding service at {self._where} did not answer"
                f" ({type(error).__name__}). Check that it runs and can be reached from here.",
                part=Part.INDEX,
            ) from error
        if answer.status_code != _OK:
            raise refusal(
                answer,
                texts,
                self._protocol,
                self._model,
                where=self._where,
                naming=self._naming,
            )
        return self._vectors(answer, len(texts))

    async def _opened(self) -> httpx.AsyncClient:
        async with self._opening:
            if self._client is None:
                # It reads certificates, which takes a while.
                self._client = await asyncio.to_thread(self._open_client)
            return self._client

    def _vectors(self, answer: httpx.Response, count: int) -> list[list[float]]:
        try:
            found = self._protocol.vectors(answer.json())
            vectors = [[float(number) for number in vector] for vector in found]
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise Transient(
                f"The answer of the embedding service at {self._where} cannot be read"
                f" ({type(error).__name__}). Check that the address is that of an API of the kind"
                f" '{self.provider}'."
            ) from error
        if len(vectors) != count:
            raise Transient(
                f"The embedding service at {self._where} answered with {len(vectors)} vectors for"
                f" {count} texts."
            )
        for vector in vectors:
            if len(vector) != self.dimension:
                raise NeedsAttention(
                    f"The model '{self.name}' at {self._where} gives vectors of {len(vector)}"
                    f" numbers, but {self.dimension} are expected. Correct"
                    f" {self._naming('model', 'dimension')}.",
                    reason=Reason.MISCONFIGURED,
                )
            if not all(map(math.isfinite, vector)):
                raise Transient(f"The embedding service at {self._where} sent no finite numbers.")
        return [_unit(vector) for vector in vectors]


def _unit(vector: list[Any]) -> list[float]:
    length = math.hypot(*vector)
    return [number / length for number in vector] if length > 0 else vector
