# ruff: noqa: INP001 - run by its path, never imported
"""Takes the pictures docs/pictures/status-*.png: the status page over a real run of the demo.

A demo imports the sample documents and one broken file in a temporary folder; Chromium looks at
its status page. Run it with ``.venv/bin/python scripts/picture_status_page.py``, after 'make test'
has installed Chromium; it takes about a minute.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.async_api import async_playwright

from drivefeed.bootstrap import open_memory
from drivefeed.catalog.listing import list_files, org_named
from drivefeed.catalog.progress import Standing, progress_of
from drivefeed.catalog.sessions import create_link
from drivefeed.sample import write_sample
from drivefeed.settings import Settings
from drivefeed.web.door import DOOR_FILE
from drivefeed.web.server import StatusPage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Browser

    from drivefeed.catalog.engine import Catalog

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
DEMO = "from drivefeed.cli import main; main()"
BROKEN = "Broken offer.docx"
ENOUGH = 6
"""Searchable files after which the first picture is taken."""
PATIENCE_SECONDS = 120


@contextmanager
def demo(home: Path) -> Iterator[Settings]:
    """Run a demo in a folder."""
    folder, data = home / "OneDrive", home / "data"
    write_sample(folder)
    (folder / BROKEN).write_text("This is no document.\n", encoding="utf-8")
    command = [sys.executable, "-c", DEMO, "--data", str(data), "demo", str(folder)]
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=home, stdin=subprocess.DEVNULL, stdout=log)  # noqa: S603 - our own demo
    try:
        yield Settings(data_dir=data)
    finally:
        process.terminate()
        process.wait()


def wait_for_daemon(data: Path) -> None:
    """Wait until the demo's daemon has made its catalog and serves."""
    for _ in range(PATIENCE_SECONDS * 10):
        if (data / DOOR_FILE).is_file():
            return
        time.sleep(0.1)
    raise TimeoutError(f"No daemon serves '{data}'.")


async def wait_for(catalog: Catalog, *, searchable: int | None) -> None:
    """Wait until so many files are searchable, or until nothing moves any more."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            for one in await progress_of(catalog):
                there = one.counts[Standing.SEARCHABLE] + one.counts[Standing.FAILED]
                if one.at_rest or (searchable is not None and there >= searchable):
                    return
            await asyncio.sleep(0.1)


async def take(browser: Browser, catalog: Catalog, page: StatusPage) -> None:
    """Sign in, and take all pictures."""
    await wait_for(catalog, searchable=ENOUGH)
    link = await create_link(catalog, org_id=await org_named(catalog, None), name="demo")
    context = await browser.new_context(base_url=page.url, viewport={"width": 1100, "height": 700})
    tab = await context.new_page()
    await tab.goto(f"/sign-in/once?link={link.text}")
    await tab.wait_for_url(f"{page.url}/")
    await tab.locator("#live[data-state=on]").wait_for()
    await asyncio.sleep(2)
    await tab.screenshot(path=PICTURES / "status-overview.png")
    await wait_for(catalog, searchable=None)
    (broken,) = [one for one in await list_files(catalog) if one.path.endswith(BROKEN)]
    where = f"/connections/{broken.connection_id}"
    await tab.emulate_media(color_scheme="dark")
    await tab.goto(where)
    await tab.locator("#live[data-state=on]").wait_for()
    await tab.screenshot(path=PICTURES / "status-connection-dark.png")
    await tab.emulate_media(color_scheme="light")
    await tab.set_viewport_size({"width": 390, "height": 844})
    await tab.goto(f"{where}/files/{broken.item_id}")
    await tab.locator("#live[data-state=on]").wait_for()
    await tab.screenshot(path=PICTURES / "status-passport-phone.png", full_page=True)


async def main() -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory() as home, demo(Path(home)) as settings:
        await asyncio.to_thread(wait_for_daemon, settings.data_dir)
        async with open_memory(settings) as catalog, async_playwright() as playwright:
            page = StatusPage(catalog, host="127.0.0.1", port=0)
            serving = asyncio.create_task(page.run())
            browser = await playwright.chromium.launch(
                executable_path=shutil.which("chromium"),
                args=["--no-sandbox"] if os.geteuid() == 0 else [],
            )
            await take(browser, catalog, page)
            await browser.close()
            await page.close()
            await serving


if __name__ == "__main__":
    asyncio.run(main())
