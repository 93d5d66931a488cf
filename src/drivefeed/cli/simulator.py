"""graphsim for the demo: a process of its own, and the faults it is told to show."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import NeedsAttention, Part, PartDown
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx

_READY_SECONDS = 30.0
_LOOK_SECONDS = 0.05
_AGAIN_SECONDS = 0.3
_END_SECONDS = 5.0


class Simulator:
    """A running graphsim.

    Attributes:
        endpoints: what graphsim wrote about itself once it was up.
    """

    def __init__(
        self, endpoints: dict[str, Any], client: httpx.AsyncClient, process: Process
    ) -> None:
        self.endpoints = endpoints
        self._client = client
        self._process = process

    def check(self) -> None:
        """Check that it runs.

        Raises:
            NeedsAttention: it has ended, and nothing starts it again.
        """
        if self._process.returncode is not None:
            raise NeedsAttention(
                "graphsim, which serves the folder to the demo, has ended (exit status "
                f"{self._process.returncode}). Start the demo again: what was imported stays.",
                reason=Reason.MISCONFIGURED,
            )

    async def refuse_downloads(self, count: int) -> None:
        """Let the next ``count`` requests for content be refused, as for a lack of rights.

        Raises:
            PartDown: graphsim does not answer.
        """
        fault = {
            "kind": "status",
            "match": {"op": "content"},
            "count": count,
            "status": 403,
            "code": "accessDenied",
            "message": "Simulated by the demo.",
        }
        await self._ask("POST", fault)

    async def accept_downloads(self) -> None:
        """Refuse nothing any more.

        Raises:
            PartDown: graphsim does not answer.
        """
        await self._ask("DELETE", None)

    async def refusals_left(self) -> int:
        """Return how many downloads will still be refused.

        Raises:
            PartDown: graphsim does not answer.
        """
        waiting = (await self._ask("GET", None)).json()
        return sum(fault["count"] for fault in waiting)

    async def left_out(self) -> dict[str, str]:
        """Return what of the folder no drive could hold, by path, with the reason.

        Raises:
            PartDown: graphsim does not answer.
        """
        drives = (await self._ask("GET", None, path="/drives")).json()
        return {path: why for drive in drives for path, why in drive["leftOut"].items()}

    async def _ask(self, method: str, body: Any, *, path: str = "/faults") -> httpx.Response:
        import httpx

        try:
            response = await self._client.request(method, path, json=body)
            response.raise_for_status()
        except httpx.HTTPError as error:
            raise PartDown(f"graphsim does not answer: {error}", part=Part.SOURCE) from error
        return response


@asynccontextmanager
async def simulator(served: Path, data: Path) -> AsyncIterator[Simulator]:
    """Run graphsim over a folder.

    Raises:
        NeedsAttention: it did not start.
    """
    import httpx

    process, endpoints = await _started(served, data)
    try:
        async with httpx.AsyncClient(
            base_url=endpoints["admin_url"], timeout=10.0, trust_env=False
        ) as client:
            yield Simulator(endpoints, client, process)
    finally:
        await _end(process)


async def _started(served: Path, data: Path) -> tuple[Process, dict[str, Any]]:
    """Start graphsim; where the one of a killed demo is just ending, start it again."""
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                process = await _launch(served, data)
                try:
                    endpoints = await _ready(process, data / "graphsim.json")
                except BaseException:
                    await _end(process)
                    raise
                if endpoints is not None:
                    return process, endpoints
                if not await asyncio.to_thread(_is_in_use, data):
                    break
                await asyncio.sleep(_AGAIN_SECONDS)
        words = "graphsim did not start"
    except TimeoutError:
        words = f"graphsim was not ready after {_READY_SECONDS:.0f} s"
    log = data / "graphsim.log"
    said = await asyncio.to_thread(_last_words, log)
    raise NeedsAttention(f"{words}: {said} (more in {log})", reason=Reason.MISCONFIGURED)


async def _launch(served: Path, data: Path) -> Process:
    ready_file = data / "graphsim.json"
    await asyncio.to_thread(ready_file.unlink, missing_ok=True)
    with (data / "graphsim.log").open("ab") as log:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "graphsim",
            str(served),
            "--state",
            str(data / "graphsim"),
            "--ready-file",
            str(ready_file),
            "--parent",
            str(os.getpid()),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C is for us: running jobs still need the source until they end.
            start_new_session=True,
        )


async def _ready(process: Process, ready_file: Path) -> dict[str, Any] | None:
    """Return what graphsim wrote once it was up; None where it ended instead."""
    while process.returncode is None:
        if await asyncio.to_thread(ready_file.is_file):
            found: dict[str, Any] = json.loads(await asyncio.to_thread(ready_file.read_text))
            return found
        await asyncio.sleep(_LOOK_SECONDS)
    return None


def _is_in_use(data: Path) -> bool:
    return "in use" in _last_words(data / "graphsim.log")


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return lines[-1] if lines else "it said nothing"


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
