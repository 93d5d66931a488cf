"""graphsim as a process of its own, and its log of what was asked of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx

from support import forks
from support.permissions import give_up_overriding_permissions
from support.processes import environment, until

if TYPE_CHECKING:
    from pathlib import Path

READY_SECONDS = 60.0
END_SECONDS = 30.0


class Sim:
    """A graphsim process over a real folder.

    Args:
        folder: the folder that is the drive.
        state: where it keeps item ids, so that a second start knows them again.
    """

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder = folder
        self.state = state
        self.endpoints: dict[str, Any] = {}
        self.process: forks.Fork | None = None

    def start(self) -> None:
        """Start it and wait until it serves."""
        self.state.mkdir(parents=True, exist_ok=True)
        ready = self.state / "ready.json"
        ready.unlink(missing_ok=True)
        with (self.state / "graphsim.log").open("ab") as log:
            self.process = forks.Fork(
                forks.GRAPHSIM,
                (str(self.folder), "--state", str(self.state), "--ready-file", str(ready)),
                env=environment(),
                stdout=log,
                stderr=log,
                preexec_fn=give_up_overriding_permissions,
            )
        until(ready.is_file, seconds=READY_SECONDS, what="graphsim to be ready")
        self.endpoints = json.loads(ready.read_text())

    def stop(self) -> None:
        """End it in order."""
        process, self.process = self.process, None
        if process is not None:
            process.terminate()
            process.wait(END_SECONDS)

    def mark(self) -> int:
        """Return the number of the latest request; a start for :meth:`requests`."""
        last: int = self._get("/counters")["last"]
        return last

    def requests(self, *, since: int = 0, op: str | None = None) -> list[dict[str, Any]]:
        """Return the requests after a mark."""
        asked = {"since": str(since)} | ({"op": op} if op else {})
        entries: list[dict[str, Any]] = self._get("/log", **asked)["entries"]
        return entries

    def downloads(self, *, since: int = 0) -> list[dict[str, Any]]:
        """Return the requests for content: those that redirect and those that bring bytes."""
        return [one for one in self.requests(since=since) if one["op"] in {"content", "download"}]

    def fault(self, **words: Any) -> None:
        """Have something go wrong; see graphsim's README."""
        httpx.post(self.endpoints["admin_url"] + "/faults", json=words).raise_for_status()

    def change(self, method: str, path: str, words: Any = None) -> Any:
        """Ask the admin port for a change; see graphsim's README."""
        url = self.endpoints["admin_url"] + path
        answer = httpx.request(method, url, json=words, timeout=30).raise_for_status()
        return answer.json() if answer.content else None

    def _get(self, path: str, **asked: str) -> Any:
        answer = httpx.get(self.endpoints["admin_url"] + path, params=asked, timeout=30)
        return answer.raise_for_status().json()
