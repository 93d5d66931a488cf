"""What the tests of the Graph source share: clocks, ids, accounts of a simulator, collecting."""

from __future__ import annotations

import asyncio
import atexit
import shutil
import tempfile
import time
import uuid
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivefeed.sources.graph import ClientSecret, GraphAccount, GraphSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.domain.remote import DriveRef, RemoteItem
    from drivefeed.ports import Source
    from graphsim.serving import GraphSim


class RealClock:
    def now(self) -> int:
        return int(time.time() * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class HurriedClock:
    """Moves ahead at once when asked to sleep; remembers how long it was asked to."""

    def __init__(self, start: int = 1_790_000_000_000) -> None:
        self._now = start
        self.slept: list[float] = []

    def now(self) -> int:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += round(seconds * 1000)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)


class TurnedClock:
    """Stands still until it is turned by hand."""

    def __init__(self) -> None:
        self._now = 1_790_000_000_000
        self._sleepers: list[tuple[int, asyncio.Event]] = []

    def now(self) -> int:
        return self._now

    async def sleep(self, seconds: float) -> None:
        awake = asyncio.Event()
        self._sleepers.append((self._now + round(seconds * 1000), awake))
        await awake.wait()

    async def turn(self, seconds: float) -> None:
        self._now += round(seconds * 1000)
        for due, awake in self._sleepers:
            if due <= self._now:
                awake.set()
        for _ in range(20):
            await asyncio.sleep(0)


class PlainIds:
    def new(self) -> str:
        return str(uuid.uuid4())

    def fraction(self) -> float:
        return 0.5


@cache
def sim_state() -> Path:
    """A folder for simulators to keep certificates in, so that each is made only once."""
    folder = tempfile.mkdtemp(prefix="graph-source-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def account_of(sim: GraphSim, **changes: Any) -> GraphAccount:
    ends = sim.endpoints
    settings: dict[str, Any] = {
        "account_id": "sim",
        "name": "sim",
        "tenant_id": ends.tenant_id,
        "client_id": ends.client_id,
        "sign_in": ClientSecret(ends.client_secret),
        "authority": ends.login_url,
        "graph_url": ends.graph_url,
        "ca_file": ends.ca_file,
    }
    return GraphAccount(**(settings | changes))


def source_of(
    account: GraphAccount,
    clock: RealClock | HurriedClock | None = None,
    *,
    read_timeout: float = 30.0,
) -> GraphSource:
    return GraphSource(
        {account.account_id: account},
        clock=clock or HurriedClock(),
        ids=PlainIds(),
        allowance=1_000_000,
        read_timeout=read_timeout,
    )


async def crawl(
    source: Source, drive: DriveRef, link: str | None = None
) -> tuple[dict[str, RemoteItem], str]:
    """Follow a round to its deltaLink; the last occurrence of an item wins."""
    found: dict[str, RemoteItem] = {}
    for _ in range(100):
        page = await source.delta(drive, link)
        found |= {item.item_id: item for item in page.items}
        if page.delta_link:
            return found, page.delta_link
        link = page.next_link
    raise AssertionError("the round did not end")


async def content(
    source: Source,
    drive: DriveRef,
    item_id: str,
    meanwhile: Callable[[], object] = lambda: None,
) -> bytes:
    """Read a file whole, doing something after each chunk."""
    got = []
    async with source.download(drive, item_id) as download:
        async for chunk in download.chunks():
            got.append(chunk)
            meanwhile()
    return b"".join(got)
