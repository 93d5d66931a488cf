"""Chromium, as scripts/set_up.py provides it: from PATH, else Playwright's own."""

from __future__ import annotations

import os
import shutil
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from playwright.async_api import async_playwright

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""A browser for tests talks to our server and to nobody else."""


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run Chromium without a screen; it is missing only where 'make test' was not asked."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    # Chromium's own sandbox refuses to work for root.
    args = [*QUIET, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=args)
        try:
            yield browser
        finally:
            await browser.close()


class Complaints:
    """What a page's console says is wrong: errors of scripts, and what the policy forbade."""

    def __init__(self, page: Page) -> None:
        self.found: list[str] = []
        page.on("console", self._take)
        page.on("pageerror", lambda error: self.found.append(str(error)))

    def _take(self, message: object) -> None:
        kind, text = getattr(message, "type", ""), getattr(message, "text", "")
        if kind in {"error", "warning"}:
            self.found.append(text)
