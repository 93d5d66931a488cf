"""The object store: where originals and artifacts are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object in the store. ``sha256`` (hex) is None where only a listing was asked."""

    key: str
    size: int
    sha256: str | None = None
    modified_at: int | None = None


class ObjectStore(Protocol):
    """Keeps the bytes of documents under keys that name org, document, import and round."""

    async def put(
        self, key: str, chunks: AsyncIterator[bytes], *, content_type: str, size: int | None
    ) -> StoredObject:
        """Store a new object from a stream, in bounded memory, and return size and SHA-256.

        The object is there completely or not at all. ``size`` is a hint for part sizes.

        Raises:
            AlreadyExists: there is an object under the key (whatever its content).
            PartDown: the store does not answer, is full or refuses us.
        """
        ...

    async def stat(self, key: str) -> StoredObject | None:
        """Return the object's size, or None if there is none."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the object's bytes in pieces of at most 1 MiB.

        Raises:
            NotFound: there is no such object.
        """
        ...

    async def fetch(self, key: str, path: Path) -> None:
        """Copy the object into the local file ``path``.

        Raises:
            NotFound: there is no such object.
        """
        ...

    async def delete(self, key: str) -> bool:
        """Delete the object; False if it was not there."""
        ...

    def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """Yield all objects whose key starts with ``prefix``, in key order."""
        ...

    async def address(self, key: str, *, seconds: int) -> str | None:
        """Return a URL that gives the object to anybody for some time, or None without any.

        Whether the object is there is not looked up.
        """
        ...

    async def abort_uploads(self, *, before: int) -> int:
        """Abort unfinished uploads begun before that time; return how many."""
        ...

    async def unfinished_uploads(self, *, before: int) -> int:
        """Return how many unfinished uploads were begun before that time; nothing changes."""
        ...

    async def check(self) -> None:
        """Write, conditionally write, read and delete a small object.

        Raises:
            PartDown: with a sentence that says which step failed and why.
        """
        ...

    async def aclose(self) -> None:
        """Release connections and threads."""
        ...
