"""Every provider of embeddings, made from what the settings say of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.embed_naming import in_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from drivefeed.indexer.embed_naming import Naming
    from drivefeed.indexer.embed_protocols import WireProtocol
    from drivefeed.ports import Clock, Embedder

LOCAL: Final = "local"
MULTILINGUAL: Final = "multilingual"
OPENAI: Final = "openai"
OLLAMA: Final = "ollama"
PROVIDERS: Final = (LOCAL, MULTILINGUAL, OPENAI, OLLAMA)
HERE: Final = frozenset({LOCAL, MULTILINGUAL})
"""Providers that run in this process, and need nothing of the settings."""


@dataclass(frozen=True, slots=True)
class EmbeddingChoice:
    """What somebody chose. What is None is what is known of the model.

    Attributes:
        provider: one of :data:`PROVIDERS`.
        model: as the service calls it; empty for the providers of this machine.
        base_url: empty for the service's usual address.
        api_key: never shown; None where the service asks for none.
        shorten: ask an OpenAI-compatible service for vectors of ``dimension`` numbers.
        batch: the most texts of a request.
        timeout_seconds: for one request.
        naming: calls these fields as they were given, in sentences on what has to be corrected.
    """

    provider: str = LOCAL
    model: str = ""
    base_url: str = ""
    api_key: str | None = None
    dimension: int | None = None
    max_tokens: int | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    shorten: bool = False
    batch: int = 32
    timeout_seconds: float = 60.0
    naming: Naming = field(default=in_settings, compare=False)

    def __repr__(self) -> str:
        return f"EmbeddingChoice({self.provider!r}, {self.model!r})"


def open_embedder(
    choice: EmbeddingChoice,
    *,
    threads: int,
    clock: Clock,
    open_client: Callable[[float], httpx.AsyncClient] | None = None,
) -> Embedder:
    """Return an embedder; nothing is loaded, and nobody is asked, before its first use.

    Args:
        choice: what is wanted.
        threads: for models on this machine.
        clock: for waiting.
        open_client: makes an HTTP client with that timeout in seconds; called in a thread.

    Raises:
        NeedsAttention: the choice lacks something.
    """
    if choice.provider == LOCAL:
        from drivefeed.indexer.embed import LocalEmbedder

        return LocalEmbedder(threads=threads)
    if choice.provider == MULTILINGUAL:
        from drivefeed.indexer.embed_multilingual import MultilingualEmbedder

        return MultilingualEmbedder(threads=threads)
    return _remote(choice, clock, open_client or _plain_client)


def _remote(
    choice: EmbeddingChoice, clock: Clock, open_client: Callable[[float], httpx.AsyncClient]
) -> Embedder:
    from drivefeed.indexer.embed_models import describe_model
    from drivefeed.indexer.embed_protocols import OLLAMA_URL, OPENAI_URL, Ollama, OpenAi
    from drivefeed.indexer.embed_remote import RemoteEmbedder

    if not choice.model:
        raise NeedsAttention(
            f"The embedding provider '{choice.provider}' needs the name of a model. Say it as "
            f"{choice.naming('model')}.",
            reason=Reason.MISCONFIGURED,
        )
    model = describe_model(
        choice.model,
        dimension=choice.dimension,
        tokens=choice.max_tokens,
        query_prefix=choice.query_prefix,
        document_prefix=choice.document_prefix,
        naming=choice.naming,
    )
    if choice.provider == OPENAI:
        protocol: WireProtocol = OpenAi(api_key=choice.api_key, shorten=choice.shorten)
        url = choice.base_url or OPENAI_URL
    else:
        protocol = Ollama(api_key=choice.api_key)
        url = choice.base_url or OLLAMA_URL
    return RemoteEmbedder(
        protocol,
        model,
        base_url=url,
        clock=clock,
        open_client=lambda: open_client(choice.timeout_seconds),
        batch=choice.batch,
        naming=choice.naming,
    )


def _plain_client(seconds: float) -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(timeout=httpx.Timeout(seconds, connect=min(seconds, 10.0)))
