from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from drivefeed.catalog.api_keys import create_key
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.sessions import create_link
from support.catalogs import new_catalog
from support.chromium import chromium
from support.clock import CountedIds, ManualClock, no_checkpoint
from unit.web.conftest import House, furnished, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Browser, BrowserContext


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module")
async def house(tmp_path: Path) -> AsyncIterator[House]:
    clock = ManualClock()
    catalog = await open_catalog(
        new_catalog(tmp_path / "catalog.db"),
        clock=clock,
        ids=CountedIds(),
        checkpoint=no_checkpoint,
    )
    rig = await furnished(catalog)
    stranger = await ensure_org(catalog, "stranger")
    key = await create_key(catalog, org_id=rig.org_id, name="owner's")
    strange_key = await create_key(catalog, org_id=stranger, name="stranger's")
    async with serving(catalog) as page:
        yield House(page, rig, key, strange_key, clock)
    await catalog.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def signed_in(browser: Browser, house: House) -> AsyncIterator[BrowserContext]:
    """A browser's context that came in by a one-time link."""
    context = await browser.new_context(base_url=house.page.url)
    link = await create_link(house.rig.catalog, org_id=house.rig.org_id, name="anna")
    page = await context.new_page()
    await page.goto(f"/sign-in/once?link={link.text}")
    await page.wait_for_url(f"{house.page.url}/")
    assert link.text not in str(await page.evaluate("[location.href, document.referrer]"))
    await page.close()
    yield context
    await context.close()


@pytest.fixture
def addresses(house: House) -> list[str]:
    """One of each kind of page."""
    where = f"/connections/{house.connection_id}"
    files = [f"{where}/files/{item}" for item in ("a", "b", "c")]
    return ["/", where, f"{where}?standing=failed", *files, "/search?q=plan", "/sign-in", "/none"]
