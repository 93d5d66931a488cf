from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.engine import open_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from unit.catalog.rig import Rig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def catalog(catalog_url: str, clock: ManualClock) -> AsyncIterator[Catalog]:
    whole = await open_catalog(
        catalog_url,
        clock=clock,
        ids=CountedIds(),
        checkpoint=no_checkpoint,
    )
    yield whole
    await whole.aclose()


@pytest.fixture
async def rig(catalog: Catalog) -> Rig:
    """A drive with ``docs`` connected and nothing listed yet."""
    made = await Rig.make(catalog)
    await made.connect()
    await made.scan()
    return made
