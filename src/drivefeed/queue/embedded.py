"""The Valkey server that we start ourselves when no Redis URL is set.

Only one process runs a server on a folder, and two servers never open one append-only file: the
server inherits a locked descriptor, so its lock lasts as long as itself, also when we were killed.
It has a process group of its own (a Ctrl-C in the terminal is ours to deal with: jobs must end
before the server does), ends with us even when we are killed (Linux), and comes back on the same
port with the same password when it dies, so that clients reconnect by themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from drivefeed.queue.server_files import ServerFolder, down
from drivefeed.queue.server_process import PortTaken, ServerProcess, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from drivefeed.domain.errors import PartDown

_DAEMON = "daemon"
"""The lock of whoever runs a server on a folder, or might."""
_PORT_TRIES = 4
_FIRST_RESTART_S = 0.2
_SLOWEST_RESTART_S = 5.0
_STEADY_S = 60.0  # a server that lived this long is started again at once when it dies


def embedded_url(folder: Path) -> str | None:
    """Return the URL of the server that runs on ``folder``, or None if none does.

    For other processes of the same user: commands, the board.
    """
    files = ServerFolder(folder)
    found = files.listening()
    return found.url if found is not None and files.is_locked("server") else None


@contextmanager
def alone_on(folder: Path, *, name: str = _DAEMON) -> Iterator[None]:
    """Keep other processes off ``folder`` for a while, as a server on it would.

    For a daemon whose queue is elsewhere and whose other parts are in the data folder; and for a
    command that writes to the data folder, and starts what it needs, before its own server.

    Args:
        name: of the lock; with another one than the daemon's, a daemon may still come up.

    Raises:
        PartDown: another process uses it already; the sentence names it.
    """
    files = ServerFolder(folder)
    files.create()
    lock = files.lock(name)
    if lock is None:
        raise _another(files, name)
    try:
        if name != _DAEMON and files.is_locked(_DAEMON):
            raise _another(files)
        files.sign(lock)
        yield
    finally:
        os.close(lock)


def _another(files: ServerFolder, lock: str = _DAEMON) -> PartDown:
    return down(
        f"Another drivefeed (process {files.owner(lock) or 'unknown'}) already uses the data "
        f"folder {files.path.parent}; stop it or choose another data folder."
    )


class EmbeddedValkey:
    """Starts, watches and stops one server on a folder.

    Args:
        folder: kept for the server alone; see :mod:`drivefeed.queue.server_files`.
        port: the port to listen on; None for the one of the last start, or any free one.
        on_event: is told in a sentence when the server died and when it is back; must not raise.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        on_event: Callable[[str], None] | None = None,
    ) -> None:
        self._files = ServerFolder(folder)
        self._wanted_port = port
        self._on_event = on_event or (lambda _sentence: None)
        self._server: ServerProcess | None = None
        self._daemon_lock: int | None = None
        self._stopping = asyncio.Event()
        self._launching = asyncio.Lock()

    @property
    def url(self) -> str | None:
        """Where the server listens, with its password; None before it was started."""
        return self._server.listening.url if self._server else None

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs."""
        return self._server.pid if self._server else None

    async def start(self) -> str:
        """Start the server and return its URL once it answers.

        To be called once, from the main thread: on Linux the server ends with the thread that
        started it.

        Raises:
            PartDown: with a sentence that says why there is no server.
        """
        self._files.create()
        self._daemon_lock = self._files.lock(_DAEMON)
        if self._daemon_lock is None:
            raise _another(self._files)
        try:
            self._files.sign(self._daemon_lock)
            self._files.trim_log()
            server = await self._first_launch()
        except BaseException:
            await self.stop()
            raise
        return server.listening.url

    async def run(self) -> None:
        """Watch the server and start it again whenever it dies, until :meth:`stop` is called."""
        delay = _FIRST_RESTART_S
        while self._server is not None:
            began = time.monotonic()
            ending = await self._server.wait()
            if self._stopping.is_set():
                return
            self._on_event(f"The embedded queue server {ending}.")
            if time.monotonic() - began > _STEADY_S:
                delay = _FIRST_RESTART_S
            while not await self._relaunch(self._server.listening.port, delay):
                if self._stopping.is_set():
                    return
                delay = min(delay * 2, _SLOWEST_RESTART_S)
            delay = min(delay * 2, _SLOWEST_RESTART_S)
            self._on_event("The embedded queue server is back.")

    async def _relaunch(self, port: int, delay: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), delay)
        if self._stopping.is_set():
            return False
        try:
            await self._launch(port)
        except Exception as error:  # noqa: BLE001  # a full disk may get room again: we go on
            self._on_event(f"The embedded queue server could not be started again: {error}")
            return False
        return True

    async def stop(self) -> None:
        """Let the server write its data and end; kill it after 5 s. Can be called twice."""
        self._stopping.set()
        async with self._launching:
            if self._server is not None and not await self._server.end():
                self._on_event("The embedded queue server did not end in time and was killed.")
        self._files.forget()
        if self._daemon_lock is not None:
            os.close(self._daemon_lock)
            self._daemon_lock = None

    async def _first_launch(self) -> ServerProcess:
        port = self._wanted_port or self._files.last_port() or free_port()
        for _ in range(_PORT_TRIES - 1):
            try:
                return await self._launch(port)
            except PortTaken:
                if self._wanted_port is not None:
                    raise
                port = free_port()
        return await self._launch(port)

    async def _launch(self, port: int) -> ServerProcess:
        async with self._launching:  # so that stop() finds every server that was started
            self._server = await ServerProcess.launch(self._files, port, stopping=self._stopping)
            return self._server
