from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from drivefeed.indexer.extract import ExtractionPool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CORPUS = Path(__file__).resolve().parents[3].parent / "shared" / "corpus"
if not CORPUS.is_dir():  # a worktree lies one folder deeper
    CORPUS = Path(__file__).resolve().parents[3].parent.parent / "shared" / "corpus"


@pytest.fixture(scope="session")
def corpus() -> Path:
    if not CORPUS.is_dir():
        pytest.skip("The folder with real documents (../shared/corpus) is not on this machine.")
    return CORPUS


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_pool() -> AsyncIterator[ExtractionPool]:
    """Read with one warm child for a whole module, where its life is not what is tested."""
    async with ExtractionPool(size=1) as pool:
        yield pool


@pytest.fixture
async def pool() -> AsyncIterator[ExtractionPool]:
    async with ExtractionPool(size=1) as pool:
        yield pool
