"""A person watches the demo on the status page, as the documentation tells them to."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.async_api import expect

from support import forks
from support.chromium import Complaints, chromium
from support.daemon import drivefeed
from support.demo import Demo
from support.processes import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.async_api import Page


pytestmark = pytest.mark.slow

PATIENCE_MS = 90_000
BEFORE = {
    "Harbour/Cranes.md": "# Cranes\n\nThe crane driver wears a harness above four metres.\n",
    "Prices.csv": "fish,price\nherring,4\nplaice,9\n",
    "Broken.docx": "this is no archive at all\n",
}
LATER = {f"Later/Note {number}.txt": f"Ferry number {number} is late.\n" for number in range(8)}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@contextmanager
def status_page(demo: Demo) -> Iterator[dict[str, str]]:
    """``drivefeed web --open`` over the demo's data; yields its address and its link."""
    words = ["--data", str(demo.data), "web", "--port", "0", "--open", "--json"]
    with forks.Fork(
        forks.DRIVEFEED,
        words,
        cwd=demo.home,
        env=environment(DISPLAY="", WAYLAND_DISPLAY="", PYTHONUNBUFFERED="1"),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            said = ""
            while not said.rstrip().endswith("}"):
                line = process.stdout.readline()
                assert line, "drivefeed web ended"
                said += line
            yield json.loads(said)
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()


async def addresses_linked_from(page: Page, start: str) -> set[str]:
    """Follow every link of our own, as the owner."""
    found, ahead = set(), [start]
    while ahead:
        address = ahead.pop()
        if address in found:
            continue
        found.add(address)
        answer = await page.goto(address)
        assert answer is not None
        assert answer.status == 200, address
        links = await page.eval_on_selector_all("a[href]", "all => all.map(a => a.href)")
        parts = [urlsplit(link) for link in links if link.startswith(start)]
        ahead += [
            start.rstrip("/") + one._replace(scheme="", netloc="", fragment="").geturl()
            for one in parts
        ]
    return found


@contextmanager
def demo_with_page(tmp_path: Path, folder: Path, port: int) -> Iterator[Demo]:
    """Run a demo that serves the status page itself, on a port."""
    demo = Demo(tmp_path / "home", folder, tmp_path / "data")
    try:
        demo.start(DRIVEFEED_WEB_PORT=str(port))
        yield demo
        demo.stop()
    finally:
        demo.end()


def new_key(demo: Demo, *words: str) -> dict[str, Any]:
    """Make an API key by command, in a process of its own."""
    options = ("--data", str(demo.data), "key", "create", *words, "--json")
    made: dict[str, Any] = json.loads(drivefeed(*options, cwd=demo.home).stdout)
    return made


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


async def test_the_demo_is_watched_from_a_browser(tmp_path: Path) -> None:
    folder = tmp_path / "OneDrive"
    write(folder, BEFORE)
    (tmp_path / "home").mkdir()
    port = free_port()
    with demo_with_page(tmp_path, folder, port) as demo:
        made = new_key(demo, "reports")
        with status_page(demo) as told:
            async with chromium() as browser:
                page = await (await browser.new_context()).new_page()
                complaints = Complaints(page)
                await page.goto(told["link"])
                await page.wait_for_url(told["url"] + "/")
                await _watch_progress(page, folder)
                await _read_the_failure(page)
                found = await addresses_linked_from(page, told["url"] + "/")
                assert complaints.found == []
            await _strangers_find_nothing(demo, told["url"], found, made["key"])
        await _the_daemon_says_the_same(f"http://127.0.0.1:{port}", made["key"])


async def _the_daemon_says_the_same(url: str, key: str) -> None:
    async with httpx.AsyncClient(
        base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=30
    ) as client:
        (one,) = (await client.get("/v1/")).json()["connections"]
        assert (one["found"], one["searchable"], one["failed"]) == (11, 10, 1)
        hits = (await client.get("/v1/search?q=harness")).json()["hits"]
        assert hits[0]["path"] == "Harbour/Cranes.md"
        where = f"/v1/connections/{hits[0]['connection_id']}/files/{hits[0]['item_id']}"
        assert (await client.get(where)).json()["path"] == "Harbour/Cranes.md"


async def _watch_progress(page: Page, folder: Path) -> None:
    card = page.locator(".card")
    await expect(card).to_contain_text("100 % of 3 files", timeout=PATIENCE_MS)
    await page.evaluate(
        """() => {
          window.seen = [];
          const look = () => window.seen.push(document.querySelector('.card').dataset.percent);
          new MutationObserver(look).observe(document.body, {childList: true, subtree: true});
        }"""
    )
    write(folder, LATER)
    await expect(card).to_contain_text("100 % of 11 files", timeout=PATIENCE_MS)
    seen = [int(one) for one in await page.evaluate("window.seen")]
    assert min(seen) < 100
    assert seen[-1] == 100


async def _read_the_failure(page: Page) -> None:
    await page.get_by_role("link", name="1 file failed").click()
    await page.get_by_role("link", name="Broken.docx").click()
    await expect(page.locator(".why.bad")).to_contain_text("Open it in its own application")
    await expect(page.locator(".story")).to_contain_text("refused (corrupt)")
    await expect(page.locator(".facts")).to_contain_text("nothing")
    assert await page.get_by_role("button").all_inner_texts() == ["Sign out"]
    await page.goto("/".join(page.url.split("/")[:3]) + "/search?q=harness")
    await expect(page.get_by_role("link", name="Harbour/Cranes.md")).to_be_visible()


async def _strangers_find_nothing(demo: Demo, url: str, found: set[str], key: str) -> None:
    _make_org(demo, "stranger")
    strange = new_key(demo, "theirs", "--org", "stranger")
    named = [one for one in found if "/connections/" in one]
    assert len(named) > 11
    named += [re.sub(r"^(https?://[^/]+)", r"\1/v1", one) for one in named]
    own, other = ({"Authorization": f"Bearer {one}"} for one in (key, strange["key"]))
    async with httpx.AsyncClient(timeout=30) as client:
        for address in named:
            assert (await client.get(address, headers=own)).status_code == 200, address
            assert (await client.get(address, headers=other)).status_code == 404, address
        answer = (await client.get(f"{url}/v1/", headers=other)).json()
        assert answer["connections"] == answer["troubles"] == []


def _make_org(demo: Demo, name: str) -> None:
    """Write a second org into the catalog's file."""
    import sqlite3

    with sqlite3.connect(demo.data / "catalog.sqlite", timeout=30) as catalog:
        catalog.execute("INSERT INTO orgs (id, name, created_at) VALUES (?, ?, 0)", (name, name))
