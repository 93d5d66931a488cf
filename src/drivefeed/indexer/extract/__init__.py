"""Text out of files, in child processes that a bad file may ruin without harm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.indexer.extract.pool import ExtractionPool

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.indexer.model import Extraction, Limits

__all__ = ["ExtractionPool", "extract"]


async def extract(path: Path, *, name: str, media_type: str | None, limits: Limits) -> Extraction:
    """Read one file in a process started for it alone; for many files, use a pool.

    Raises:
        Rejected: The file can't be read, for one of `drivefeed.domain.reasons`.
    """
    async with ExtractionPool(size=1) as pool:
        return await pool.extract(path, name=name, media_type=media_type, limits=limits)
