"""How the board behaves as a service: who may enter, what it prints, and what ends it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import httpx
import pytest

from integration.board.rig import BOARD_PASSWORD, REDIS_PASSWORD, Valkey, free_port, until, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from integration.board.rig import Bench, Board, BoardServer

    StartBoard = Callable[..., BoardServer]


@pytest.mark.parametrize(
    "auth", [None, ("admin", "wrong"), ("other", BOARD_PASSWORD), ("", ""), ("admin", "")]
)
async def test_nothing_but_health_without_the_right_password(
    board: Board, auth: tuple[str, str] | None
) -> None:
    url = board.client.base_url
    async with httpx.AsyncClient(base_url=url, auth=auth, trust_env=False) as stranger:
        for path in ("/", "/api/queues", "/static/favicon.ico", "/queue/transfer", "/nowhere"):
            answer = await stranger.get(path, headers={"Accept": "text/html"})
            assert answer.status_code == 401, path
            assert answer.headers["www-authenticate"].startswith("Basic ")
            assert "BULL_BOARD_PASSWORD" in answer.text
        assert (await stranger.put("/api/queues/transfer/pause")).status_code == 401
        assert (await stranger.get("/healthz")).json() == {"status": "ok", "redis": "answers"}
    assert not (await board.queues())["transfer"]["isPaused"]


async def test_redis_killed_and_back(
    board: Board, board_server: BoardServer, bench: Bench, valkey: Valkey
) -> None:
    await bench.add("transfer", "transfer-a-1")
    with valkey.client() as client:
        # One job must survive the kill: have the append-only file on disk first.
        client.waitaof(1, 0, 10_000)

    for _ in range(2):
        valkey.kill()

        async def down() -> bool:
            return (await board.client.get("/healthz")).status_code == 503

        await until(down, "the board to notice")
        refused = await board.client.get("/api/queues")
        assert refused.status_code == 503
        assert f"127.0.0.1:{valkey.port}" in refused.json()["message"]
        assert "keeps running" in refused.json()["message"]
        assert (await board.client.get("/")).is_success

        valkey.start()

        async def back() -> bool:
            return (await board.client.get("/healthz")).is_success

        await until(back, "the board to reconnect")
        assert (await board.queues())["transfer"]["counts"]["waiting"] == 1
    printed = board_server.printed
    assert printed.count("answers again") == 2
    assert printed.count("was lost") == 2
    assert_no_secret(printed)


async def test_started_before_redis(start_board: StartBoard, tmp_path: Path) -> None:
    valkey = Valkey(tmp_path)
    server = start_board(REDIS_URL=valkey.url, BULL_BOARD_PASSWORD=BOARD_PASSWORD)
    url = server.wait_until_ready()
    wait_for(lambda: "does not answer (ECONNREFUSED)" in server.printed, "the sentence")
    auth = ("admin", BOARD_PASSWORD)
    async with httpx.AsyncClient(base_url=url, auth=auth, trust_env=False) as client:
        assert (await client.get("/api/queues")).status_code == 503
        try:
            valkey.start()

            async def listed() -> bool:
                return (await client.get("/api/queues")).is_success

            await until(listed, "the queues")
        finally:
            valkey.kill()
    assert_no_secret(server.printed)


def test_a_wrong_redis_password_is_named_without_being_repeated(
    start_board: StartBoard, valkey: Valkey
) -> None:
    url = f"redis://:{REDIS_PASSWORD}-wrong@127.0.0.1:{valkey.port}/0"
    server = start_board(DRIVEFEED_REDIS_URL=url, BULL_BOARD_PASSWORD=BOARD_PASSWORD)

    wait_for(lambda: "refused the credentials" in server.printed, "the sentence")

    assert "DRIVEFEED_REDIS_URL" in server.printed
    assert_no_secret(server.printed)
    assert server.terminate() == 0


def test_a_read_only_board_changes_nothing(start_board: StartBoard, valkey: Valkey) -> None:
    server = start_board(
        DRIVEFEED_REDIS_URL=valkey.url,
        BULL_BOARD_INSECURE="1",
        BULL_BOARD_READ_ONLY="1",
    )
    with httpx.Client(base_url=server.wait_until_ready(), trust_env=False) as client:
        wait_for(lambda: client.get("/healthz").is_success, "the board to reach Valkey")
        for path in ("pause", "transfer/pause", "transfer/a/retry", "transfer/obliterate"):
            assert client.put(f"/api/queues/{path}").status_code == 405
        assert client.post("/api/queues/transfer/add", json={"name": "x"}).status_code == 405
        queues = client.get("/api/queues").json()["queues"]
        assert all(queue["readOnlyMode"] and not queue["isPaused"] for queue in queues)
    with valkey.client() as redis:
        assert list(redis.scan_iter("*")) == []


def test_without_a_password_only_this_machine_s_own_names_are_answered(
    start_board: StartBoard, valkey: Valkey
) -> None:
    server = start_board(DRIVEFEED_REDIS_URL=valkey.url, BULL_BOARD_INSECURE="1")
    with httpx.Client(base_url=server.wait_until_ready(), trust_env=False) as client:
        assert client.get("/").status_code == 200
        assert client.get("/", headers={"Host": "rebound.example"}).status_code == 403


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "BULL_BOARD_PASSWORD is not set"),
        ({"BULL_BOARD_INSECURE": "1", "BULL_BOARD_HOST": "0.0.0.0"}, "not on 0.0.0.0"),
        ({"BULL_BOARD_PASSWORD": "x", "BULL_BOARD_PORT": "99999"}, "BULL_BOARD_PORT"),
        ({"BULL_BOARD_PASSWORD": "x", "BULL_BOARD_READ_ONLY": "maybe"}, "write 1 or 0"),
        (
            {"BULL_BOARD_PASSWORD": "x", "REDIS_URL": f"http://:{REDIS_PASSWORD}@h"},
            "REDIS_URL starts with",
        ),
        (
            {"BULL_BOARD_PASSWORD": "x", "BULL_BOARD_QUEUES_FILE": "/nowhere/queues.json"},
            "/nowhere/queues.json (ENOENT)",
        ),
    ],
)
def test_wrong_settings_end_it_with_a_sentence(
    start_board: StartBoard, settings: dict[str, str], sentence: str
) -> None:
    server = start_board(**settings)

    assert server.wait_until_ended() == 2
    assert sentence in server.printed
    assert "    at " not in server.printed
    assert_no_secret(server.printed)


def test_all_wrong_settings_are_reported_together(start_board: StartBoard) -> None:
    server = start_board(BULL_BOARD_PORT="many", REDIS_URL="ftp://h", BULL_BOARD_READ_ONLY="?")
    assert server.wait_until_ended() == 2
    assert len(server.printed.splitlines()) == 4


def test_a_port_in_use_ends_it_with_a_sentence(start_board: StartBoard) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = start_board(BULL_BOARD_PASSWORD=BOARD_PASSWORD, BULL_BOARD_PORT=str(port))
        assert server.wait_until_ended() == 3
    assert f"Port {port} on 127.0.0.1 is in use" in server.printed
    assert "    at " not in server.printed


def test_sigterm_ends_it_cleanly_with_and_without_redis(
    start_board: StartBoard, valkey: Valkey, tmp_path: Path
) -> None:
    connected = start_board(DRIVEFEED_REDIS_URL=valkey.url, BULL_BOARD_PASSWORD=BOARD_PASSWORD)
    alone = start_board(
        REDIS_URL=f"redis://127.0.0.1:{free_port()}", BULL_BOARD_PASSWORD=BOARD_PASSWORD
    )
    connected.wait_until_ready()
    alone.wait_until_ready()
    wait_for(lambda: "Connected to Redis" in connected.printed, "the connection")
    wait_for(lambda: "does not answer" in alone.printed, "the sentence")

    assert connected.terminate() == 0
    assert alone.terminate() == 0

    assert not list(tmp_path.glob("board-*/ready.json"))
    assert_no_secret(connected.printed)


def test_the_production_settings_keep_jobs_and_evict_none(valkey: Valkey) -> None:
    with valkey.client() as client:
        memory, persistence = client.info("memory"), client.info("persistence")
    assert memory["maxmemory_policy"] == "noeviction"
    assert persistence["aof_enabled"] == 1
    assert persistence["aof_last_write_status"] == "ok"


def assert_no_secret(printed: str) -> None:
    assert REDIS_PASSWORD not in printed
    assert BOARD_PASSWORD not in printed
