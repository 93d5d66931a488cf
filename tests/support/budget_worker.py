"""A process that downloads what a list in Redis names, within a budget that others share.

``python -m support.budget_worker SETTINGS``, with settings as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from redis.asyncio import Redis

from drivefeed.domain.budget import Budget, Lane
from drivefeed.domain.remote import DriveRef
from drivefeed.queue.script import RedisScript
from drivefeed.sources.graph import ClientSecret, Gates, GraphAccount, GraphSource
from drivefeed.sources.graph.budget_shared import script_text
from drivefeed.system import SystemClock, SystemIds


class Worker:
    def __init__(self, wanted: dict[str, Any]) -> None:
        self.wanted = wanted
        clock, ids = SystemClock(), SystemIds()
        self.clock = clock
        budget = Budget(wanted["per_minute"], share=wanted["share"])
        url = wanted["redis"]
        self.gates = Gates(
            clock, ids, budget=lambda _: budget, script=lambda: RedisScript(url, script_text())
        )
        secret = ClientSecret(wanted["account"].pop("client_secret"))
        account = GraphAccount("sim", "sim", sign_in=secret, **wanted["account"])
        self.source = GraphSource({"sim": account}, clock=clock, ids=ids, gates=self.gates)
        self.drive = DriveRef("sim", wanted["drive"])
        self.redis: Redis = Redis.from_url(url, decode_responses=True)

    async def run(self) -> None:
        """Work until the list is empty."""
        following = asyncio.create_task(self.follow()) if self.wanted["follows"] else None
        async with asyncio.TaskGroup() as group:
            for _ in range(self.wanted["workers"]):
                group.create_task(self.backfill())
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        await self.source.aclose()
        await self.redis.aclose()

    async def backfill(self) -> None:
        await self.redis.incr("started")
        while item_id := await self.redis.lpop("work"):
            await self.download(str(item_id), Lane.BACKFILL)

    async def follow(self) -> None:
        """Copy what changes, as soon as it is seen."""
        link = self.wanted["link"]
        source = self.source.at(Lane.CHANGES)
        while True:
            page = await source.delta(self.drive, link)
            link = page.delta_link or page.next_link
            for item in page.items:
                if (item.name or "").startswith("change"):
                    await self.download(item.item_id, Lane.CHANGES)
            await self.redis.set("link", link or "")
            await asyncio.sleep(0.25)

    async def download(self, item_id: str, lane: Lane) -> None:
        async with self.source.at(lane).download(self.drive, item_id) as download:
            async for _ in download.chunks():
                pass


asyncio.run(Worker(json.loads(sys.argv[1])).run())
