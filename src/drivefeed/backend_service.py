"""Our own ingestion backend as a service for drivefeeds elsewhere, over the published contract.

One process over a data folder of its own: the catalog remembers jobs, the folder or bucket keeps
what was submitted, the index holds the chunks. It needs no Redis.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import httpx

from drivefeed.assembly import open_indexing, open_turns
from drivefeed.backends.gate import Gated
from drivefeed.backends.served import ServedBackend, fetch_timeout
from drivefeed.backends.serving import application
from drivefeed.bootstrap import folder_identity
from drivefeed.catalog import heartbeats
from drivefeed.catalog.index_jobs import ensure_sender
from drivefeed.outward import outbound_of
from drivefeed.ports import Stage
from drivefeed.queue.embedded import alone_on
from drivefeed.roles import owner_name
from drivefeed.services.direct import Direct
from drivefeed.services.sole_process import share_catalog, take_catalog
from drivefeed.stages.breaker import Breakers
from drivefeed.stages.index import Index
from drivefeed.stages.runner import Runner
from drivefeed.telemetry import log
from drivefeed.web.backend_server import BackendServer
from drivefeed.workload import attempts_of, concurrency_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.backends.signing import Credential
    from drivefeed.bootstrap import Parts

_BEAT_SECONDS: Final = 3.0
_ROLE: Final = "backend"

_log = log("backend")


class BackendService:
    """The embedded backend behind HTTP.

    Args:
        host: the address to bind.
        port: 0 for any that is free.

    Attributes:
        url: where it is, once it is made.
    """

    def __init__(self, parts: Parts, credential: Credential, *, host: str, port: int) -> None:
        self._parts = parts
        self._credential = credential
        self._server = BackendServer(host, port)
        self.url = self._server.url

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Serve and work until closed.

        Args:
            on_ready: called once everything is open.

        Raises:
            DrivefeedError: a part cannot be opened, or another process uses the data folder.
        """
        parts = self._parts
        around = parts.around
        owner = owner_name(around.ids.new())
        async with AsyncExitStack() as stack:
            if parts.settings.is_for_one_process:
                stack.enter_context(alone_on(parts.settings.data_dir / "queue"))
                folder = folder_identity(parts.settings)
                await take_catalog(parts.catalog, owner, _ROLE, folder=folder)
            else:
                await share_catalog(parts.catalog)
            turns = open_turns(parts, owner)
            if turns is not None:
                await turns.take()
                stack.push_async_callback(turns.give_back)
            indexing = await open_indexing(parts, stack)
            transport = await asyncio.to_thread(outbound_of(parts.settings).transport)
            client = await stack.enter_async_context(
                httpx.AsyncClient(transport=transport, timeout=fetch_timeout(), trust_env=False)
            )
            due = asyncio.Event()
            backend = ServedBackend(
                parts.jobs,
                parts.index,
                parts.store,
                client,
                prepare=partial(ensure_sender, parts.catalog),
                on_bytes=due.set,
            )
            stack.push_async_callback(backend.aclose)
            work = Direct(
                parts.catalog,
                Runner(parts.catalog, Breakers(around.clock, around.ids), owner=owner),
                Index(parts.catalog, indexing, parts.jobs),
                attempts=attempts_of(parts.settings)[Stage.INDEX],
                concurrency=concurrency_of(parts.settings)[Stage.INDEX],
                wake=due,
                is_ready=backend.is_ready,
            )
            app = Gated(application(backend, backend.accept), self._credential, around.clock)
            async with asyncio.TaskGroup() as group:
                background = [
                    group.create_task(self._beat(owner), name="heartbeat"),
                    group.create_task(work.run(), name="index jobs"),
                ]
                if turns is not None:
                    background.append(group.create_task(turns.keep(), name="index"))
                _log.info("backend_ready", url=self.url)
                on_ready()
                await self._server.run(app)
                for task in background:
                    task.cancel()
            await heartbeats.leave(parts.catalog, owner)

    def close(self) -> None:
        """Answer what was asked, hand back what is worked on, then stop."""
        self._server.close()

    async def _beat(self, owner: str) -> None:
        while True:
            await heartbeats.beat(self._parts.catalog, owner, _ROLE)
            await heartbeats.reap(self._parts.catalog, own=owner)
            await asyncio.sleep(_BEAT_SECONDS)
