"""One process of an embedded Valkey: starting it, waiting until it answers, ending it."""

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
from drivefeed.queue.server_files import Listening, down, server_binary

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.queue.server_files import ServerFolder

_READY_WITHIN_S = 60.0  # a large append-only file takes its time to load
_STOP_WITHIN_S = 5.0  # it writes a second of deliveries at most; the catalog knows them anyway
_ORPHAN_WITHIN_S = 15.0
_ORPHAN_ASKED_AFTER_S = 1.0  # one that is ending already gets this long


class PortTaken(PartDown):
    """Somebody else listens on the port."""

    def __init__(self, port: int) -> None:
        super().__init__(
            f"The port {port} for the embedded queue server is in use by another program; choose "
            "another port or stop that program.",
            part=Part.QUEUE,
        )


class ServerProcess:
    """A running server. Made by :meth:`launch`."""

    def __init__(self, process: asyncio.subprocess.Process, listening: Listening) -> None:
        self._process = process
        self.listening = listening

    @classmethod
    async def launch(
        cls, files: ServerFolder, port: int, *, stopping: asyncio.Event
    ) -> ServerProcess:
        """Start a server on ``files`` and ``port`` and return once it answers.

        Raises:
            PortTaken: another program listens on the port.
            PartDown: there is no server, for the reason it says, or ``stopping`` was set.
        """
        binary = await asyncio.to_thread(server_binary)
        lock = await _server_lock(files)
        try:
            password = files.password()
            files.write_conf(port=port, password=password)
            log_start = files.log_size()
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                deathsig.__file__,
                str(os.getpid()),
                str(binary),
                str(files.conf.resolve()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(lock,),
            )
        finally:
            os.close(lock)  # the server has its own copy
        url = f"redis://:{password}@127.0.0.1:{port}/0"
        made = cls(process, Listening(url=url, port=port, server_pid=process.pid))
        try:
            await made._ready(files, log_start, stopping)
            files.remember(made.listening)
        except BaseException:
            await made.end()
            raise
        return made

    @property
    def pid(self) -> int | None:
        """The process id while the server runs."""
        return self._process.pid if self._process.returncode is None else None

    async def wait(self) -> str:
        """Wait until the server ended and say how."""
        code = await self._process.wait()
        if code < 0:
            return f"was ended by the signal {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    async def end(self) -> bool:
        """Let the server write its data and end; kill it after 5 s and return False then."""
        if self._process.returncode is not None:
            return True
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self._process.wait(), _STOP_WITHIN_S)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
                return False
        return True

    async def _ready(self, files: ServerFolder, log_start: int, stopping: asyncio.Event) -> None:
        client = _client(self.listening.url)
        deadline = time.monotonic() + _READY_WITHIN_S
        try:
            while not stopping.is_set():
                if self._process.returncode is not None:
                    raise _why(files.log_since(log_start), files.path, self.listening.port)
                # These errors mean: not up yet, or loading.
                with contextlib.suppress(errors.ConnectionError, errors.TimeoutError, OSError):
                    info = await client.info("server")
                    if int(info["process_id"]) == self._process.pid:
                        # It tells about itself while it still loads, but answers no ping then.
                        await client.ping()
                        return
                    raise PortTaken(self.listening.port)
                if time.monotonic() > deadline:
                    raise down(
                        "The embedded queue server did not become ready within "
                        f"{_READY_WITHIN_S:.0f} s; see {files.log}."
                    )
                await asyncio.sleep(0.02)
            raise down("The embedded queue server was stopped while it started.")
        finally:
            await client.aclose()


def free_port() -> int:
    """Return a port of the loopback address that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _server_lock(files: ServerFolder) -> int:
    """Wait until no other server uses the folder, and stop one whose parent is gone."""
    began = time.monotonic()
    asked = False
    while (lock := files.lock("server")) is None:
        waited = time.monotonic() - began
        if waited > _ORPHAN_WITHIN_S:
            raise down(
                f"Another queue server still uses the folder {files.path} and does not end; stop "
                "the process that holds its server.lock."
            )
        if not asked and waited > _ORPHAN_ASKED_AFTER_S:
            asked = True
            await _dismiss_orphan(files)
        await asyncio.sleep(0.05)
    return lock


async def _dismiss_orphan(files: ServerFolder) -> None:
    # Only the server that was ours knows our password, so no stranger is ever stopped.
    found = files.listening()
    if found is not None:
        client = _client(found.url)
        with contextlib.suppress(errors.RedisError, OSError):
            await client.shutdown(nosave=True)
        await client.aclose()


def _client(url: str) -> Redis:
    return Redis.from_url(
        url, socket_timeout=1, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0)
    )


def _why(log: str, folder: Path, port: int) -> PartDown:
    """Turn the log of a server that ended at once into an error."""
    if "Address already in use" in log:
        return PortTaken(port)
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
