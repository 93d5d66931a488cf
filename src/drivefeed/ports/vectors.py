"""The vector index: points, searches, and what turns text into vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class Point:
    """One chunk in the index. ``point_id`` is UUIDv5(import, round, chunk)."""

    point_id: str
    vector: Sequence[float]
    text: str
    org_id: str
    document_id: str
    import_id: str
    round: int
    seq: int
    chunk: int
    page: int
    name: str
    media_type: str
    folders: tuple[str, ...]
    live: bool


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Which points may be found. ``org_id`` always comes from the credential."""

    org_id: str
    live: bool | None = True
    folders: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ()
    document_id: str | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A found point; a higher score is a better hit."""

    score: float
    point: Point


RoundRow = tuple[str, int, bool, int]
"""Import id, round, whether it is live, and how many points there are."""


class VectorIndex(Protocol):
    """Dense and sparse vectors of chunks, with payloads as in docs/index-contract.md."""

    async def upsert(self, points: Sequence[Point]) -> None:
        """Write points; a point with the same id is replaced. Durable on return."""
        ...

    async def search(
        self, *, vector: Sequence[float], text: str, where: SearchFilter, limit: int
    ) -> list[SearchHit]:
        """Find the best points by dense and BM25 similarity, fused by reciprocal rank."""
        ...

    async def set_live(self, *, import_id: str, round_: int, live: bool) -> int:
        """Set the live flag on all points of a round; return how many there are."""
        ...

    async def set_folders(self, *, document_id: str, name: str, folders: tuple[str, ...]) -> int:
        """Update name and folders on all points of a document; no vector is touched."""
        ...

    async def remove(self, *, import_id: str, round_: int) -> int:
        """Remove all points of a round; return how many there were."""
        ...

    async def remove_of(self, *, org_id: str) -> int:
        """Remove all points of an organization; return how many there were."""
        ...

    async def count(self, *, import_id: str | None = None, round_: int | None = None) -> int:
        """Count points exactly, of one round or of the whole collection."""
        ...

    def rounds(self, *, org_id: str | None = None) -> AsyncIterator[RoundRow]:
        """Yield what there is of each round in the index, or of those of one organization.

        Points that are none of ours are told as round 0 of an import with an empty id.
        """
        ...

    async def points_of(self, *, import_id: str, round_: int) -> list[str]:
        """Return the ids of all points of a round; of those that are none of ours with ("", 0)."""
        ...

    async def remove_points(self, ids: Sequence[str]) -> int:
        """Remove points by their ids; return how many there were."""
        ...

    async def check(self) -> None:
        """Check that the index answers and fits the embedding model.

        Raises:
            PartDown: with a sentence that says what is wrong.
        """
        ...

    async def drop(self) -> None:
        """Close, and erase everything; fine if there is nothing."""
        ...

    async def aclose(self) -> None:
        """Flush and close."""
        ...


class Embedder(Protocol):
    """Turns text into vectors of length one, so that their dot product is the cosine.

    Vectors of two embedders that differ in provider, name or dimension must never meet in one
    index.
    """

    @property
    def provider(self) -> str:
        """Return who runs the model: ``local``, ``multilingual``, ``openai`` or ``ollama``."""
        ...

    @property
    def name(self) -> str:
        """Return the model's name."""
        ...

    @property
    def dimension(self) -> int:
        """Return how many numbers a vector has."""
        ...

    @property
    def max_tokens(self) -> int:
        """Return the most tokens of a text that is embedded whole, marks and prefix not counted."""
        ...

    @property
    def loaded(self) -> bool:
        """Whether a model is in the memory of this process."""
        ...

    def tokenizer(self) -> Tokenizer | Callable[[str], int]:
        """Return what counts the tokens of a text, for chunking.

        The model's own tokenizer, or a function that never counts too few where it can help it.
        It may load files and takes time: call it in a thread.
        """
        ...

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts to be found, one vector for each, in order.

        Raises:
            Throttled, Transient, PartDown, NeedsAttention: as their docstrings say.
        """
        ...

    async def embed_query(self, text: str) -> list[float]:
        """Embed what somebody searches for; it does not wait for documents under way.

        Raises:
            Throttled, Transient, PartDown, NeedsAttention: as their docstrings say.
        """
        ...

    async def check(self) -> None:
        """Embed a word.

        Raises:
            PartDown, NeedsAttention: with a sentence that says what is wrong.
        """
        ...

    async def aclose(self) -> None:
        """Let models, threads and connections go."""
        ...
