"""What a file holds. Bodies are read block by block, so that no file is ever in memory whole."""

from __future__ import annotations

import hashlib
import os
from typing import Protocol

from graphsim.quickxor import BLOCK, QuickXor

READ_SIZE = 1 << 20
"""Bytes read and sent at once, per download."""


class Body(Protocol):
    """The content of one file, open for reading."""

    @property
    def size(self) -> int:
        """The length in bytes."""
        ...

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``; fewer only at the end."""
        ...

    def close(self) -> None:
        """Release what the body holds; reading afterwards is an error."""
        ...


class BytesBody:
    """Content held in memory."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    @property
    def size(self) -> int:
        """The length in bytes."""
        return len(self._content)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``."""
        return self._content[offset : offset + length]

    def close(self) -> None:
        """Do nothing: memory needs no closing."""


class AlteredBody:
    """Content that is delivered unlike it is listed: cut short, and with something after it.

    Args:
        body: What it is made of; closed with this one.
        keep: How many of its bytes remain; all of them by default.
        extra: Bytes after those.
    """

    def __init__(self, body: Body, keep: int | None = None, extra: bytes = b"") -> None:
        self._body = body
        self._kept = body.size if keep is None else min(keep, body.size)
        self._extra = extra

    @property
    def size(self) -> int:
        """The length in bytes, as delivered."""
        return self._kept + len(self._extra)

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``."""
        if offset >= self._kept:
            begin = offset - self._kept
            return self._extra[begin : begin + length]
        return self._body.read(offset, min(length, self._kept - offset))

    def close(self) -> None:
        """Close what it is made of."""
        self._body.close()


class SyntheticBody:
    """Content that is computed when it is read: any size, no disk, the same for the same seed.

    Each block repeats one pseudo-random pattern and begins with its own number, so that a block
    out of place is noticed by any checksum.
    """

    def __init__(self, seed: int, size: int) -> None:
        self._size = size
        self._pattern = hashlib.shake_256(f"graphsim:{seed}".encode()).digest(BLOCK)

    @property
    def size(self) -> int:
        """The length in bytes."""
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``."""
        end = min(offset + length, self._size)
        parts: list[bytes] = []
        while offset < end:
            number, start = divmod(offset, BLOCK)
            stop = min(BLOCK, start + end - offset)
            head = number.to_bytes(8, "big")
            if start < len(head):
                parts.append((head + self._pattern[8:])[start:stop])
            else:
                parts.append(self._pattern[start:stop])
            offset += stop - start
        return b"".join(parts)

    def close(self) -> None:
        """Do nothing: there is nothing open."""


class FileBody:
    """Content of a file on disk, read through one descriptor whatever happens to its name."""

    def __init__(self, path: str) -> None:
        # Neither follow a link out of the served folder nor wait for a pipe's other end.
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        self.stat = os.fstat(self._descriptor)

    @property
    def size(self) -> int:
        """The length in bytes when it was opened."""
        return self.stat.st_size

    def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset``."""
        return os.pread(self._descriptor, length, offset)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def hash_body(body: Body) -> str:
    """Return the base64 quickXorHash of a body, reading it block by block."""
    state, offset = QuickXor(), 0
    while block := body.read(offset, BLOCK):
        state.update(block)
        offset += len(block)
    return state.base64()


def other_hashes(body: Body) -> dict[str, str]:
    """Return the hashes that personal drives publish beside the quickXorHash, by property."""
    # SHA-1 is what the service publishes; nothing rests on its strength.
    sha1, sha256, offset = hashlib.sha1(usedforsecurity=False), hashlib.sha256(), 0
    while block := body.read(offset, BLOCK):
        sha1.update(block)
        sha256.update(block)
        offset += len(block)
    return {"sha1Hash": sha1.hexdigest().upper(), "sha256Hash": sha256.hexdigest().upper()}
