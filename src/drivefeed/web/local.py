"""The daemon's door for commands on the same machine: HTTP on a socket only its owner can open.

The embedded index belongs to one process, so commands ask the daemon while it runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import uvicorn
from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from drivefeed import __version__
from drivefeed.domain.errors import DrivefeedError, NotFound
from drivefeed.services.find import find
from drivefeed.web.door import DOOR_FILE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.indexer.search import Searcher
    from drivefeed.indexer.shelf import Shelf
    from drivefeed.services.loop import LoopWatch
    from drivefeed.services.pulse import Pulse
    from drivefeed.services.reindex import Reindexing
    from drivefeed.stages.breaker import Breakers

_LONGEST_SOCKET_PATH = 100
"""A little under what Linux (108) and macOS (104) allow."""


class LocalApi:
    """Serves search, the index, reindexing, health and metrics on a Unix socket.

    Args:
        folder: the data folder, where commands look for the socket's path.
    """

    def __init__(
        self,
        folder: Path,
        *,
        catalog: Catalog,
        searcher: Searcher,
        index: Shelf,
        reindexing: Reindexing,
        breakers: Breakers,
        loop_watch: LoopWatch,
        pulse: Pulse,
    ) -> None:
        self._folder = folder
        self._catalog = catalog
        self._searcher = searcher
        self._index = index
        self._reindexing = reindexing
        self._breakers = breakers
        self._loop_watch = loop_watch
        self._pulse = pulse
        self._server: uvicorn.Server | None = None
        self._done = asyncio.Event()

    async def run(self) -> None:
        """Serve until closed; the socket's path is written where commands look for it."""
        folder = self._folder.absolute()
        path = folder / "drivefeed.sock"
        if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH:
            path = Path(tempfile.mkdtemp(prefix="drivefeed-")) / "drivefeed.sock"
        path.unlink(missing_ok=True)
        config = uvicorn.Config(
            self._app(),
            uds=str(path),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        # It imports its protocols, which takes tenths of a second.
        await asyncio.to_thread(config.load)
        self._server = _Server(config)
        door = folder / DOOR_FILE
        door.write_text(json.dumps({"socket": str(path), "pid": os.getpid()}))
        try:
            await self._server.serve()
        finally:
            door.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            if path.parent != folder:
                with suppress(OSError):
                    path.parent.rmdir()
            self._done.set()

    async def close(self) -> None:
        """Answer what was asked, then stop."""
        if self._server is not None:
            self._server.should_exit = True
            await self._done.wait()

    def _app(self) -> FastAPI:
        app = FastAPI(openapi_url=None)

        @app.exception_handler(DrivefeedError)
        async def refuse(_: Request, error: DrivefeedError) -> JSONResponse:
            status = 404 if isinstance(error, NotFound) else 503
            return JSONResponse({"error": str(error)}, status_code=status)

        @app.get("/healthz")
        async def health(response: Response) -> dict[str, Any]:
            stuck = await self._pulse.stuck()
            if stuck:
                response.status_code = 503
            return {
                "status": "stuck" if stuck else "ok",
                "stuck": stuck,
                "version": __version__,
                "pid": os.getpid(),
                "down": {str(p): words for p, words in self._breakers.open_parts().items()},
                "longest_stall_ms": round(self._loop_watch.longest * 1000),
                "model_loaded": self._index.current.embedder.loaded,
            }

        @app.get("/metrics")
        async def metrics() -> Response:
            return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

        @app.get("/v1/search")
        async def search(
            q: str, limit: Annotated[int, Query(ge=1, le=100)] = 10, org: str | None = None
        ) -> list[dict[str, Any]]:
            found = await find(self._catalog, self._searcher, q, org_name=org, limit=limit)
            return [hit.as_dict() for hit in found]

        @app.get("/v1/index/rounds")
        async def rounds() -> StreamingResponse:
            async def lines() -> AsyncIterator[str]:
                async for one in self._index.rounds():
                    yield json.dumps(one) + "\n"

            return StreamingResponse(lines(), media_type="application/x-ndjson")

        _add_points(app, self._index)
        _add_reindexing(app, self._reindexing)
        return app


def _add_points(app: FastAPI, index: Shelf) -> None:
    @app.get("/v1/index/points")
    async def points(import_id: str, number: int) -> list[str]:
        return await index.points_of(import_id=import_id, round_=number)

    @app.delete("/v1/index/points")
    async def remove(ids: Annotated[list[str], Body(max_length=10_000)]) -> int:
        return await index.remove_points(ids)


def _add_reindexing(app: FastAPI, reindexing: Reindexing) -> None:
    @app.get("/v1/index/reindex")
    async def look() -> dict[str, Any]:
        return (await reindexing.state()).as_dict()

    @app.post("/v1/index/reindex")
    async def start(
        to: str | None = None, *, leave_out: bool = False, anew: bool = False
    ) -> dict[str, Any]:
        return (await reindexing.start(to, leave_out=leave_out, anew=anew)).as_dict()

    @app.delete("/v1/index/reindex")
    async def cancel() -> dict[str, Any]:
        return (await reindexing.cancel()).as_dict()


class _Server(uvicorn.Server):
    """Leaves signals to the daemon, which ends everything in order."""

    def capture_signals(self) -> Any:
        """Capture none."""
        return nullcontext()
