"""A data folder with commands, and the look-alike of Entra that their accounts sign in to."""

from __future__ import annotations

import asyncio
import io
import json
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from graphsim.serving import GraphSim, serve
from integration.graph_source.kit import sim_state
from support.commands import run_command
from support.evidence import rows_in

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@contextmanager
def serving() -> Iterator[GraphSim]:
    """The look-alike in a thread, because commands have an event loop of their own."""
    ready, over = threading.Event(), asyncio.Event()
    found: list[GraphSim] = []
    loop = asyncio.new_event_loop()

    async def run() -> None:
        async with serve(state=sim_state()) as sim:
            found.append(sim)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert ready.wait(60)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


class Desk:
    """A data folder, and the look-alike as options of commands."""

    def __init__(self, home: Path, sim: GraphSim) -> None:
        self.home = home
        self.sim = sim

    @property
    def place(self) -> list[str]:
        ends = self.sim.endpoints
        return [
            *("--tenant", ends.tenant_id, "--client-id", ends.client_id),
            *("--authority", ends.login_url, "--graph-url", ends.graph_url),
            *("--ca-file", ends.ca_file),
        ]

    def __call__(
        self, *words: str, typed: str = "", ok: Sequence[int] = (0,)
    ) -> subprocess.CompletedProcess[str]:
        with patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()))):
            return run_command("--data", str(self.home / "data"), *words, cwd=self.home, ok=ok)

    def json(self, *words: str, typed: str = "", ok: Sequence[int] = (0,)) -> Any:
        return json.loads(self(*words, "--json", typed=typed, ok=ok).stdout)

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return rows_in(self.home / "data", sql)

    def anywhere(self, secret: str) -> list[str]:
        """Return the files below the data folder that hold a secret as it is."""
        return [
            str(path)
            for path in (self.home / "data").rglob("*")
            if path.is_file() and secret.encode() in path.read_bytes()
        ]
