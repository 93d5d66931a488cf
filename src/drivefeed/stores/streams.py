"""Streams of bytes, cut and saved."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from drivefeed.stores.disk import PartialFile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from pathlib import Path

    from drivefeed.stores.threads import Threads

PIECE = 1 << 20
"""Bytes that are read or written in one go: enough to make the hop to a thread cheap."""


async def regroup(
    chunks: AsyncIterator[bytes], size_of: Callable[[int], int], spare: list[bytearray]
) -> AsyncGenerator[bytearray, None]:
    """Cut a stream into parts: part ``n`` has ``size_of(n)`` bytes, the last one what is left.

    An empty stream gives one empty part.

    Args:
        chunks: the stream.
        size_of: bytes of each part, counted from 0.
        spare: parts that are not needed any more, to be filled again. Large blocks that come and
            go break up the heap, and the process would keep growing.
    """
    part, filled, number = bytearray(), 0, 0
    async for chunk in chunks:
        view = memoryview(chunk)
        while view:
            size = size_of(number)
            piece = view[: size - filled]
            part[filled : filled + len(piece)] = piece
            filled += len(piece)
            view = view[len(piece) :]
            if filled == size:
                yield part
                number += 1
                # Whole from the start, since growing moves and rounds up. Only the first part is
                # grown: most streams end within it.
                part, filled = _blank(size_of(number), spare), 0
    del part[filled:]
    if part or not number:
        yield part


def _blank(size: int, spare: list[bytearray]) -> bytearray:
    if spare and len(spare[-1]) == size:
        return spare.pop()
    return bytearray(size)


async def save(pieces: AsyncIterator[bytes], path: Path, threads: Threads) -> None:
    """Write a stream to ``path``; a file of that name is replaced once the stream is complete.

    Raises:
        PartDown: the local disk is full or refuses us.
    """
    file = PartialFile(path.parent)
    try:
        async for piece in pieces:
            await threads.run(file.write, piece)
        await threads.run(file.replace, path)
    finally:
        await asyncio.shield(threads.run(file.discard))
