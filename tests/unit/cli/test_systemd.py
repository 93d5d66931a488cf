"""What a service manager hears, on a real socket of the kind that it listens on."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from drivefeed.cli.systemd import READY, STOPPING, TURNS, Systemd

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(address)
        line.settimeout(5)
        yield line


@pytest.mark.parametrize("abstract", [False, True])
def test_it_says_when_it_is_ready_and_when_it_ends(tmp_path: Path, *, abstract: bool) -> None:
    name = f"drivefeed-{os.getpid()}"
    shown = f"@{name}" if abstract else str(tmp_path / "notify")
    with listening(f"\0{name}" if abstract else shown) as line:
        systemd = Systemd({"NOTIFY_SOCKET": shown})
        systemd.tell(READY)
        assert line.recv(200).splitlines()[0] == b"READY=1"
        systemd.tell(STOPPING)
        assert line.recv(200).splitlines()[0] == b"STOPPING=1"


async def test_it_says_that_its_loop_turns_twice_in_each_period(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with listening(address) as line:
        systemd = Systemd({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "100000"})
        telling = asyncio.create_task(systemd.keep_telling())
        for _ in range(3):
            assert await asyncio.to_thread(line.recv, 200) == TURNS.encode()
        telling.cancel()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"NOTIFY_SOCKET": "/nowhere"},
        {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"},
        {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "nonsense"},
        {"WATCHDOG_USEC": "100000"},
    ],
)
async def test_where_nobody_listens_nothing_happens(environment: dict[str, str]) -> None:
    systemd = Systemd(environment)
    systemd.tell(READY)
    async with asyncio.timeout(5):
        await systemd.keep_telling()
