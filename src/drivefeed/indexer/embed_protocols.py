"""What embedding services say on the wire: OpenAI's API, which many others speak, and Ollama's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drivefeed.indexer.embed_models import Model

OPENAI: Final = "openai"
OLLAMA: Final = "ollama"
OPENAI_URL: Final = "https://api.openai.com/v1"
OLLAMA_URL: Final = "http://127.0.0.1:11434"


class WireProtocol(Protocol):
    """How to ask one kind of service.

    Attributes:
        provider: names the kind.
        path: comes behind the base URL.
    """

    provider: str
    path: str

    def request(self, model: Model, texts: Sequence[str]) -> dict[str, Any]:
        """Return the body of a request."""
        ...

    def headers(self) -> Mapping[str, str]:
        """Return headers, the key among them."""
        ...

    def vectors(self, answer: Any) -> list[Any]:
        """Return the vectors of an answer, in the order of the texts.

        Raises:
            KeyError, TypeError, IndexError: it is not an answer of this kind.
        """
        ...

    def without_secrets(self, words: str) -> str:
        """Return words of the service without the key, should it repeat it."""
        ...

    def remedy(self, model: Model) -> str:
        """Return what else to do when the model is not there, to follow a sentence."""
        ...


class OpenAi:
    """``POST /embeddings`` as OpenAI, Azure's v1 API, vLLM, LiteLLM, LocalAI and others serve it.

    Args:
        api_key: sent as a bearer token; None where the service asks for none.
        shorten: ask for vectors of the model's dimension, which some models can shorten.
    """

    provider = OPENAI
    path = "/embeddings"

    def __init__(self, *, api_key: str | None = None, shorten: bool = False) -> None:
        self._key = api_key
        self._shorten = shorten

    def request(self, model: Model, texts: Sequence[str]) -> dict[str, Any]:
        """Return the body of a request."""
        body = {"model": model.name, "input": list(texts), "encoding_format": "float"}
        return body | ({"dimensions": model.dimension} if self._shorten else {})

    def headers(self) -> Mapping[str, str]:
        """Return the key as a header."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def vectors(self, answer: Any) -> list[Any]:
        """Return the vectors; services may send them in another order."""
        rows = sorted(answer["data"], key=lambda row: row["index"])
        if [row["index"] for row in rows] != list(range(len(rows))):
            raise KeyError("index")
        return [row["embedding"] for row in rows]

    def without_secrets(self, words: str) -> str:
        """Return words without the key."""
        return words.replace(self._key, "[redacted]") if self._key else words

    def remedy(self, model: Model) -> str:
        """Return nothing: a model of a service is there or is not."""
        del model
        return ""


class Ollama:
    """``POST /api/embed`` of Ollama.

    Args:
        api_key: for a proxy in front of it; None without one.
    """

    provider = OLLAMA
    path = "/api/embed"

    def __init__(self, *, api_key: str | None = None) -> None:
        self._key = api_key

    def request(self, model: Model, texts: Sequence[str]) -> dict[str, Any]:
        """Return the body of a request; a text that is too long is refused, not cut."""
        return {"model": model.name, "input": list(texts), "truncate": False}

    def headers(self) -> Mapping[str, str]:
        """Return the key as a header."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def vectors(self, answer: Any) -> list[Any]:
        """Return the vectors."""
        found = answer["embeddings"]
        if not isinstance(found, list):
            raise TypeError("embeddings")
        return found

    def without_secrets(self, words: str) -> str:
        """Return words without the key."""
        return words.replace(self._key, "[redacted]") if self._key else words

    def remedy(self, model: Model) -> str:
        """Return how to get the model."""
        return f", or fetch the model with 'ollama pull {model.name}'"
