"""Text out of files, in child processes that a bad file may ruin without harm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.indexer.extract.pool import ExtractionPool
    from drivefeed.indexer.model import Extraction, Limits

__all__ = ["ExtractionPool", "extract"]


def __getattr__(name: str) -> Any:
    # The children load this package too, and the pool with asyncio is a fifth of their start.
    if name != "ExtractionPool":
        raise AttributeError(name)
    from drivefeed.indexer.extract.pool import ExtractionPool

    return ExtractionPool


async def extract(path: Path, *, name: str, media_type: str | None, limits: Limits) -> Extraction:
    """Read one file in a process started for it alone; for many files, use a pool.

    Raises:
        Rejected: The file can't be read, for one of `drivefeed.domain.reasons`.
    """
    from drivefeed.indexer.extract.pool import ExtractionPool

    async with ExtractionPool(size=1) as pool:
        return await pool.extract(path, name=name, media_type=media_type, limits=limits)
