"""The daemon's door for commands on the same machine: HTTP on a socket only its owner can open.

The embedded index belongs to one process, so commands ask the daemon while it runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from drivefeed.catalog.collection_rows import ALL
from drivefeed.catalog.listing import org_named
from drivefeed.domain.errors import DrivefeedError, NotFound
from drivefeed.services.find import find
from drivefeed.web.door import DOOR_FILE
from drivefeed.web.health import health_routes
from drivefeed.web.quiet_server import QuietServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

    from drivefeed.catalog.engine import Catalog
    from drivefeed.indexer.library import Library
    from drivefeed.indexer.search import Searcher
    from drivefeed.services.health import Health
    from drivefeed.services.reindex import Reindexing

_LONGEST_SOCKET_PATH = 100
"""A little under what Linux (108) and macOS (104) allow."""
_MOST_HITS: Final = 100
_HITS: Final = 10
_MOST_POINTS: Final = 10_000


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
        index: Library,
        reindexing: Reindexing,
        health: Health,
    ) -> None:
        self._folder = folder
        self._catalog = catalog
        self._searcher = searcher
        self._index = index
        self._reindexing = reindexing
        self._health = health
        self._server: QuietServer | None = None
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
        self._server = QuietServer(config)
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
        reindexing = _Reindexing(self._reindexing, self._catalog)
        # Starlette calls it for these errors alone, and types it for all of them.
        refusals: dict[Any, Any] = {DrivefeedError: _refuse}
        return Starlette(
            routes=[
                *health_routes(self._health),
                Route("/v1/search", self._search),
                Route("/v1/index/rounds", self._rounds),
                Route("/v1/index/points", self._points),
                Route("/v1/index/points", self._remove_points, methods=["DELETE"]),
                Route("/v1/index/reindex", reindexing.look),
                Route("/v1/index/reindex", reindexing.start, methods=["POST"]),
                Route("/v1/index/reindex", reindexing.cancel, methods=["DELETE"]),
            ],
            exception_handlers=refusals,
        )

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

    async def _points(self, request: Request) -> Response:
        asked = request.query_params
        import_id, number = asked.get("import_id"), asked.get("number", "")
        if import_id is None or not number.isdecimal():
            return JSONResponse({"error": "Points are those of an import_id and a number."}, 400)
        found = await self._index.points_of(import_id=import_id, round_=int(number))
        return JSONResponse(found)

    async def _remove_points(self, request: Request) -> Response:
        ids = await request.json()
        if not isinstance(ids, list) or len(ids) > _MOST_POINTS:
            return JSONResponse({"error": f"At most {_MOST_POINTS} ids of points are taken."}, 400)
        return JSONResponse(await self._index.remove_points([str(one) for one in ids]))


class _Reindexing:
    """Answers about reindexing, each with how it stands."""

    def __init__(self, reindexing: Reindexing, catalog: Catalog) -> None:
        self._reindexing = reindexing
        self._catalog = catalog

    async def look(self, request: Request) -> Response:
        state = await self._reindexing.state(org_id=await self._org_in(request))
        return JSONResponse(state.as_dict())

    async def start(self, request: Request) -> Response:
        asked = request.query_params
        state = await self._reindexing.start(
            asked.get("to"),
            org_id=await self._org_in(request),
            leave_out=asked.get("leave_out") == "true",
            anew=asked.get("anew") == "true",
        )
        return JSONResponse(state.as_dict())

    async def cancel(self, request: Request) -> Response:
        state = await self._reindexing.cancel(org_id=await self._org_in(request))
        return JSONResponse(state.as_dict())

    async def _org_in(self, request: Request) -> str:
        """Return the id of the organization that a command names; empty for none."""
        name = request.query_params.get("org")
        return ALL if name is None else await org_named(self._catalog, name)


async def _refuse(_: Request, error: DrivefeedError) -> Response:
    return JSONResponse({"error": str(error)}, 404 if isinstance(error, NotFound) else 503)
