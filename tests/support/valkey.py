"""A real Valkey for tests: one server for the session, emptied before each test that asks for it.

``from support.valkey import valkey_server, valkey_url`` in a test module or a conftest makes the
fixtures available there.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import redis

from drivefeed.queue import deathsig
from drivefeed.queue.server_files import server_binary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSWORD = "made-up-for-tests"


@dataclass
class ValkeyServer:
    """A server that a test may stop, freeze and start again on the same port and folder."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-I",
                "-S",
                deathsig.__file__,
                str(os.getpid()),
                str(server_binary()),
                "--bind",
                "127.0.0.1",
                "--port",
                str(self.port),
                "--requirepass",
                PASSWORD,
                "--dir",
                str(self.folder),
                "--appendonly",
                "yes",
                "--save",
                "",
                "--maxmemory-policy",
                "noeviction",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 30
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.ConnectionError:
                assert self.process.poll() is None, "valkey-server ended while it started"
                assert time.monotonic() < deadline, "valkey-server did not answer within 30 s"
                time.sleep(0.02)

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, decode_responses=True, socket_timeout=10)

    def flush(self) -> None:
        with self.client() as client:
            client.flushall()

    def freeze(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    """The session's server. Tests that kill or freeze a server use ``own_valkey``."""
    server = ValkeyServer(tmp_path_factory.mktemp("valkey"), free_port())
    server.start()
    yield server
    server.kill()


@pytest.fixture
def valkey_url(valkey_server: ValkeyServer) -> str:
    """The URL of the session's server, emptied."""
    valkey_server.flush()
    return valkey_server.url


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    """A server for one test alone."""
    folder = tmp_path / "valkey"
    folder.mkdir()
    server = ValkeyServer(folder, free_port())
    server.start()
    yield server
    server.kill()
