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
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from drivefeed import __version__
from drivefeed.domain.errors import DrivefeedError, NotFound
from drivefeed.services.find import find
from drivefeed.web.door import DOOR_FILE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from drivefeed.catalog.engine import Catalog
    from drivefeed.indexer.search import Searcher
    from drivefeed.indexer.shelf import Shelf
    from drivefeed.services.loop import LoopWatch
    from drivefeed.services.pulse import Pulse
    from drivefeed.services.reindex import Reindexing
    from drivefeed.stages.breaker import Breakers

_LONGEST_SOCKET_PATH = 100
"""A little under what Linux (108) and macOS (104) allow."""
_MOST_HITS: Final = 100
_HITS: Final = 10


class LocalApi:
    """Serves search, the index's rounds, reindexing, health and metrics on a Unix socket.

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

    def _app(self) -> Starlette:
        # FastAPI takes longer to load than everything else that a daemon needs before it is ready.
        reindexing = _Reindexing(self._reindexing)
        # Starlette calls it for these errors alone, and types it for all of them.
        refusals: dict[Any, Any] = {DrivefeedError: _refuse}
        return Starlette(
            routes=[
                Route("/healthz", self._health),
                Route("/metrics", self._metrics),
                Route("/v1/search", self._search),
                Route("/v1/index/rounds", self._rounds),
                Route("/v1/index/reindex", reindexing.look),
                Route("/v1/index/reindex", reindexing.start, methods=["POST"]),
                Route("/v1/index/reindex", reindexing.cancel, methods=["DELETE"]),
            ],
            exception_handlers=refusals,
        )

    async def _health(self, _: Request) -> Response:
        stuck = await self._pulse.stuck()
        words = {
            "status": "stuck" if stuck else "ok",
            "stuck": stuck,
            "version": __version__,
            "pid": os.getpid(),
            "down": {str(p): words for p, words in self._breakers.open_parts().items()},
            "longest_stall_ms": round(self._loop_watch.longest * 1000),
            "model_loaded": self._index.current.embedder.loaded,
        }
        return JSONResponse(words, status_code=503 if stuck else 200)

    async def _metrics(self, _: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    async def _search(self, request: Request) -> Response:
        asked = request.query_params
        words, limit = asked.get("q"), asked.get("limit", str(_HITS))
        if words is None or not limit.isdecimal() or not 1 <= int(limit) <= _MOST_HITS:
            return JSONResponse(
                {"error": f"A search has words, q, and a limit from 1 to {_MOST_HITS}."}, 400
            )
        found = await find(
            self._catalog, self._searcher, words, org_name=asked.get("org"), limit=int(limit)
        )
        return JSONResponse([hit.as_dict() for hit in found])

    async def _rounds(self, _: Request) -> Response:
        async def lines() -> AsyncIterator[str]:
            async for one in self._index.rounds():
                yield json.dumps(one) + "\n"

        return StreamingResponse(lines(), media_type="application/x-ndjson")


class _Reindexing:
    """Answers about reindexing, each with how it stands."""

    def __init__(self, reindexing: Reindexing) -> None:
        self._reindexing = reindexing

    async def look(self, _: Request) -> Response:
        return JSONResponse((await self._reindexing.state()).as_dict())

    async def start(self, request: Request) -> Response:
        asked = request.query_params
        state = await self._reindexing.start(
            asked.get("to"),
            leave_out=asked.get("leave_out") == "true",
            anew=asked.get("anew") == "true",
        )
        return JSONResponse(state.as_dict())

    async def cancel(self, _: Request) -> Response:
        return JSONResponse((await self._reindexing.cancel()).as_dict())


async def _refuse(_: Request, error: DrivefeedError) -> Response:
    return JSONResponse({"error": str(error)}, 404 if isinstance(error, NotFound) else 503)


class _Server(uvicorn.Server):
    """Leaves signals to the daemon, which ends everything in order."""

    def capture_signals(self) -> Any:
        """Capture none."""
        return nullcontext()
