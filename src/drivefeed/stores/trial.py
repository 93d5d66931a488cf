"""A small object goes in and out: the check that a store does what we rely on."""

from __future__ import annotations

import os
import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from drivefeed.domain.errors import AlreadyExists, DrivefeedError, Part, PartDown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from drivefeed.ports import ObjectStore

FOLDER = ".drivefeed-check"
_FIRST = b"drivefeed: the first content stays\n"
_SECOND = b"drivefeed: this content must be refused\n"


async def try_out(store: ObjectStore, name: str) -> None:
    """Write, conditionally write, read back and delete a small object.

    Args:
        store: the store to try.
        name: how sentences call it, such as ``bucket 'documents'``.

    Raises:
        PartDown: with a sentence that names the step that failed and why.
    """
    key = f"{FOLDER}/{socket.gethostname()}-{os.getpid()}-{time.monotonic_ns()}"
    with _step(name, "writing a small object"):
        await store.put(key, _once(_FIRST), content_type="text/plain", size=len(_FIRST))
    with _step(name, "writing again under the same key, which must be refused"):
        try:
            await store.put(key, _once(_SECOND), content_type="text/plain", size=len(_SECOND))
        except AlreadyExists:
            pass
        else:
            await store.delete(key)
            raise PartDown(
                "it was not refused. The service does not honour 'If-None-Match: *', so two "
                "workers could overwrite each other; use one that does",
                part=Part.STORE,
            )
    with _step(name, "reading it back"):
        content = b"".join([piece async for piece in store.read(key)])
        if content != _FIRST:
            raise PartDown("other bytes came back than were written", part=Part.STORE)
    with _step(name, "deleting it"):
        if not await store.delete(key) or await store.stat(key) is not None:
            raise PartDown("it is still there, or was not there before", part=Part.STORE)


@contextmanager
def _step(name: str, step: str) -> Iterator[None]:
    try:
        yield
    except DrivefeedError as error:
        raise PartDown(f"The check of {name} failed at {step}: {error}", part=Part.STORE) from error


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
