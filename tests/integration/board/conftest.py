from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import httpx
import pytest

from integration.board.rig import (
    BOARD,
    BOARD_PASSWORD,
    Bench,
    Board,
    BoardServer,
    Valkey,
    until,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def board_packages() -> Path:
    """The board's Node packages, installed from its lock file unless they are there."""
    if not (BOARD / "node_modules" / ".package-lock.json").exists():
        subprocess.run(["npm", "ci", "--no-progress"], cwd=BOARD, check=True, timeout=600)
    return BOARD


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    folder = tmp_path / "valkey"
    folder.mkdir()
    server = Valkey(folder)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def start_board(board_packages: Path, tmp_path: Path) -> Iterator[Callable[..., BoardServer]]:
    started: list[BoardServer] = []

    def start(**settings: str) -> BoardServer:
        server = BoardServer(tmp_path / f"board-{len(started)}", settings)
        started.append(server)
        return server

    yield start
    for server in started:
        server.end()


@pytest.fixture
def board_server(start_board: Callable[..., BoardServer], valkey: Valkey) -> BoardServer:
    return start_board(DRIVEFEED_REDIS_URL=valkey.url, BULL_BOARD_PASSWORD=BOARD_PASSWORD)


@pytest.fixture
async def board(board_server: BoardServer) -> AsyncIterator[Board]:
    url = board_server.wait_until_ready()
    auth = ("admin", BOARD_PASSWORD)
    async with httpx.AsyncClient(base_url=url, auth=auth, timeout=30, trust_env=False) as client:

        async def connected() -> bool:
            return (await client.get("/healthz")).is_success

        await until(connected, "the board to reach Valkey")
        yield Board(client)


@pytest.fixture
async def bench(valkey: Valkey) -> AsyncIterator[Bench]:
    made = Bench(valkey.url)
    yield made
    await made.close()
