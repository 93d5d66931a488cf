"""graphsim for the demo: a process of its own, and the faults it is told to show."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import NeedsAttention, Part, PartDown
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import httpx

_READY_SECONDS = 30.0
_LOOK_SECONDS = 0.05


class Simulator:
    """A running graphsim.

    Attributes:
        endpoints: what graphsim wrote about itself once it was up.
    """

    def __init__(self, endpoints: dict[str, Any], client: httpx.AsyncClient) -> None:
        self.endpoints = endpoints
        self._client = client

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

    async def _ask(self, method: str, body: Any) -> httpx.Response:
        import httpx

        try:
            response = await self._client.request(method, "/faults", json=body)
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

    ready_file = data / "graphsim.json"
    await asyncio.to_thread(ready_file.unlink, missing_ok=True)
    with (data / "graphsim.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "graphsim",
            str(served),
            "--state",
            str(data / "graphsim"),
            "--ready-file",
            str(ready_file),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # Ctrl-C is for us: running jobs still need the source until they end.
            start_new_session=True,
        )
    try:
        endpoints = await _ready(process, ready_file, data)
        async with httpx.AsyncClient(
            base_url=endpoints["admin_url"], timeout=10.0, trust_env=False
        ) as client:
            yield Simulator(endpoints, client)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _ready(
    process: asyncio.subprocess.Process, ready_file: Path, data: Path
) -> dict[str, Any]:
    words = "graphsim did not start"
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while process.returncode is None:
                if await asyncio.to_thread(ready_file.is_file):
                    written = await asyncio.to_thread(ready_file.read_text)
                    found: dict[str, Any] = json.loads(written)
                    return found
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        words = f"graphsim was not ready after {_READY_SECONDS:.0f} s"
    raise NeedsAttention(
        f"{words}; its words are in {data / 'graphsim.log'}.", reason=Reason.MISCONFIGURED
    )
