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
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING

from redis import exceptions as errors
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from drivefeed.domain.errors import Part, PartDown
from drivefeed.queue import deathsig
from drivefeed.queue.server_files import Listening, ServerFolder, down, server_binary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_READY_WITHIN_S = 60.0  # a large append-only file takes its time to load
_STOP_WITHIN_S = 30.0
_ORPHAN_WITHIN_S = 15.0
_PORT_TRIES = 4
_SLOWEST_RESTART_S = 5.0


def embedded_url(folder: Path) -> str | None:
    """Return the URL of the server that runs on ``folder``, or None if none does.

    For other processes of the same user: commands, the board.
    """
    files = ServerFolder(folder)
    found = files.listening()
    return found.url if found is not None and files.is_locked("server") else None


class EmbeddedValkey:
    """Starts, watches and stops one server on a folder.

    Args:
        folder: kept for the server alone; see :mod:`drivefeed.queue.server_files`.
        port: the port to listen on; None for the one of the last start, or any free one.
        on_event: is told in a sentence when the server died and when it is back.
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
        self._process: asyncio.subprocess.Process | None = None
        self._daemon_lock: int | None = None
        self._stopping = asyncio.Event()
        self._listening: Listening | None = None

    @property
    def url(self) -> str | None:
        """Where the server listens, with its password; None before it was started."""
        return self._listening.url if self._listening else None

    @property
    def pid(self) -> int | None:
        """The server's process id while it runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def start(self) -> str:
        """Start the server and return its URL once it answers.

        To be called from the main thread: on Linux the server ends with the thread that calls.

        Raises:
            PartDown: with a sentence that says why there is no server.
        """
        self._files.create()
        self._daemon_lock = self._files.lock("daemon")
        if self._daemon_lock is None:
            raise down(
                f"Another drivefeed (process {self._files.owner() or 'unknown'}) already uses the "
                f"data folder {self._files.path.parent}; stop it or choose another data folder."
            )
        try:
            self._files.sign(self._daemon_lock)
            self._files.trim_log()
            return await self._first_start()
        except BaseException:
            await self.stop()
            raise

    async def run(self) -> None:
        """Watch the server and start it again whenever it dies, until :meth:`stop` is called."""
        delay = 0.2
        while not self._stopping.is_set():
            process = self._process
            if process is not None:
                began = time.monotonic()
                await process.wait()
                if self._stopping.is_set():
                    return
                if time.monotonic() - began > _READY_WITHIN_S:
                    delay = 0.2
                self._on_event(f"The embedded queue server {_ending(process.returncode)}.")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)
            delay = min(delay * 2, _SLOWEST_RESTART_S)
            if self._stopping.is_set():
                return
            try:
                await self._launch(self._listening.port if self._listening else _free_port())
            except Exception as error:  # noqa: BLE001  # a full disk may get room again: we go on
                self._process = None
                self._on_event(f"The embedded queue server could not be started again: {error}")
            else:
                self._on_event("The embedded queue server is back.")

    async def stop(self) -> None:
        """Let the server write its data and end; kill it after 30 s. Can be called twice."""
        self._stopping.set()
        await self._end_process()
        self._files.forget()
        if self._daemon_lock is not None:
            os.close(self._daemon_lock)
            self._daemon_lock = None

    async def _first_start(self) -> str:
        port = self._wanted_port or self._files.last_port() or _free_port()
        for _ in range(_PORT_TRIES - 1):
            try:
                return await self._launch(port)
            except _PortTaken:
                if self._wanted_port is not None:
                    raise
                port = _free_port()
        return await self._launch(port)

    async def _launch(self, port: int) -> str:
        """Start the server process on ``port`` and wait until it answers."""
        lock = await self._server_lock()
        binary = await asyncio.to_thread(server_binary)
        try:
            password = self._files.password()
            self._files.write_conf(port=port, password=password)
            log_start = self._files.log_size()
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                deathsig.__file__,
                str(os.getpid()),
                str(binary),
                str(self._files.conf.resolve()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(lock,),
            )
        finally:
            os.close(lock)  # the server has its own copy
        url = f"redis://:{password}@127.0.0.1:{port}/0"
        try:
            await self._ready(url, port, self._process, log_start)
        except BaseException:
            await self._end_process()
            raise
        self._listening = Listening(url=url, port=port, server_pid=self._process.pid)
        self._files.remember(self._listening)
        return url

    async def _server_lock(self) -> int:
        """Wait until no other server uses the folder, and stop one whose parent is gone."""
        deadline = time.monotonic() + _ORPHAN_WITHIN_S
        asked = False
        while (lock := self._files.lock("server")) is None:
            if time.monotonic() > deadline:
                raise down(
                    f"Another queue server still uses the folder {self._files.path} and does not "
                    "end; stop the process that holds its server.lock."
                )
            if not asked and time.monotonic() > deadline - _ORPHAN_WITHIN_S + 1.0:
                asked = True
                await self._dismiss_orphan()
            await asyncio.sleep(0.05)
        return lock

    async def _dismiss_orphan(self) -> None:
        # Only the server that was ours knows our password, so no stranger is ever stopped.
        found = self._files.listening()
        if found is not None:
            client = _client(found.url)
            with contextlib.suppress(errors.RedisError, OSError):
                await client.shutdown(nosave=True)
            await client.aclose()

    async def _ready(
        self, url: str, port: int, process: asyncio.subprocess.Process, log_start: int
    ) -> None:
        client = _client(url)
        deadline = time.monotonic() + _READY_WITHIN_S
        try:
            while True:
                if process.returncode is not None:
                    raise _why(self._files.log_since(log_start), self._files.path, port)
                with contextlib.suppress(
                    errors.ConnectionError, errors.TimeoutError, OSError
                ):  # not up yet, or loading
                    info = await client.info("server")
                    if int(info["process_id"]) == process.pid:
                        return
                    raise _PortTaken(port)
                if time.monotonic() > deadline:
                    raise down(
                        f"The embedded queue server did not become ready within "
                        f"{_READY_WITHIN_S:.0f} s; see {self._files.log}."
                    )
                await asyncio.sleep(0.02)
        finally:
            await client.aclose()

    async def _end_process(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), _STOP_WITHIN_S)
            except TimeoutError:
                self._on_event("The embedded queue server did not end in time and was killed.")
                process.kill()
                await process.wait()


class _PortTaken(PartDown):
    """Somebody else listens on the port."""

    def __init__(self, port: int) -> None:
        super().__init__(
            f"The port {port} for the embedded queue server is in use by another program; choose "
            "another port or stop that program.",
            part=Part.QUEUE,
        )


def _client(url: str) -> Redis:
    return Redis.from_url(
        url, socket_timeout=1, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0)
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _ending(returncode: int | None) -> str:
    if returncode is not None and returncode < 0:
        return f"was ended by the signal {signal.Signals(-returncode).name}"
    return f"ended with exit code {returncode}"


def _why(log: str, folder: Path, port: int) -> PartDown:
    """Turn the log of a server that ended at once into an error."""
    if "Address already in use" in log:
        return _PortTaken(port)
    if "No space left on device" in log:
        return down(
            f"The disk that holds {folder} is full, so the embedded queue server cannot start; "
            "make room and start again."
        )
    if "Bad file format" in log or "Unexpected end of file" in log or "Error reading" in log:
        return down(
            f"The queue's append-only file in {folder} is damaged. Move the folder appendonlydir "
            "away and start again: the jobs are sent again from the catalog."
        )
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    last = lines[-1] if lines else "it said nothing"
    return down(f"The embedded queue server ended while it started: {last}")
