from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from drivefeed.domain.errors import Transient
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract import ExtractionPool, extract
from drivefeed.indexer.model import Limits, Rejected
from support.children import new_children, servers_of_the_session  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

FAULTY = (sys.executable, str(Path(__file__).with_name("faulty_child.py")))
QUICK = Limits(memory_bytes=512 << 20, cpu_seconds=1, wall_seconds=20)


@pytest.fixture
async def faulty() -> AsyncIterator[ExtractionPool]:
    async with ExtractionPool(size=1, command=FAULTY) as pool:
        yield pool


@pytest.fixture
def fault(tmp_path: Path) -> Callable[[str], Path]:
    def write(kind: str) -> Path:
        path = tmp_path / f"{kind}.txt"
        path.write_text(f"{kind}\nand a sentence to be read", "utf-8")
        return path

    return write


async def eventually(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        await asyncio.sleep(0.02)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("segfault", Reason.EXTRACTION_CRASHED),
        ("raise_error", Reason.EXTRACTION_CRASHED),
        ("be_killed", Reason.EXTRACTION_CRASHED),
        ("spin", Reason.EXTRACTION_TIMEOUT),
        ("allocate", Reason.OUT_OF_MEMORY),
        ("abort_for_memory", Reason.OUT_OF_MEMORY),
    ],
)
async def test_a_fault_is_the_files_own_and_the_next_file_is_read(
    faulty: ExtractionPool, fault: Callable[[str], Path], kind: str, reason: Reason
) -> None:
    with pytest.raises(Rejected) as caught:
        await faulty.extract(fault(kind), name="a.txt", limits=QUICK)
    assert caught.value.reason is reason
    assert caught.value.detail.endswith(".") or kind == "raise_error"
    assert not faulty.pids, "a child that failed must not be used again"

    good = await faulty.extract(fault("good"), name="a.txt", limits=QUICK)
    assert "a sentence to be read" in good.pages[0].text


async def test_a_library_that_cannot_be_loaded_is_not_the_files_fault(
    faulty: ExtractionPool, fault: Callable[[str], Path]
) -> None:
    with pytest.raises(Transient, match=r"could not load .*lexbor\.so.*'drivefeed doctor'"):
        await faulty.extract(fault("miss_a_library"), name="a.html", limits=QUICK)
    assert not faulty.pids, "what is half loaded is not used again"
    good = await faulty.extract(fault("good"), name="a.txt", limits=QUICK)
    assert "a sentence to be read" in good.pages[0].text


async def test_a_child_that_only_waits_is_killed_at_the_deadline_with_its_own_children(
    faulty: ExtractionPool, fault: Callable[[str], Path]
) -> None:
    reading = asyncio.create_task(
        faulty.extract(fault("spawn_and_sleep"), name="a.txt", limits=Limits(wall_seconds=3))
    )
    family: list[psutil.Process] = []

    def grandchild_started() -> bool:
        family[:] = [p for pid in faulty.pids for p in psutil.Process(pid).children()]
        return bool(family)

    await eventually(grandchild_started)
    with pytest.raises(Rejected) as caught:
        await reading
    assert caught.value.reason is Reason.EXTRACTION_TIMEOUT
    await eventually(lambda: all(gone(process.pid) for process in family))


async def test_a_child_killed_from_outside_costs_one_retry_and_not_the_file(
    faulty: ExtractionPool, fault: Callable[[str], Path]
) -> None:
    good = await faulty.extract(fault("be_killed_once"), name="a.txt", limits=QUICK)
    assert "a sentence to be read" in good.pages[0].text


async def test_an_idle_child_killed_from_outside_is_replaced(
    pool: ExtractionPool, fault: Callable[[str], Path]
) -> None:
    path = fault("good")
    await pool.extract(path, name="a.txt")
    (pid,) = pool.pids
    os.kill(pid, signal.SIGKILL)
    again = await pool.extract(path, name="a.txt")
    assert "a sentence" in again.pages[0].text
    assert pid not in pool.pids


async def test_a_warm_child_reads_many_files_and_is_replaced_after_its_share(
    fault: Callable[[str], Path],
) -> None:
    path = fault("good")
    seen = []
    async with ExtractionPool(size=1, files_per_process=3) as pool:
        for _ in range(3):
            await pool.extract(path, name="a.txt")
            seen += list(pool.pids)
        assert len(set(seen)) == 1
        await pool.extract(path, name="a.txt")
        assert not set(pool.pids) & set(seen)


async def test_a_child_that_has_grown_is_replaced(fault: Callable[[str], Path]) -> None:
    async with ExtractionPool(size=1, rss_bytes=1) as pool:
        await pool.extract(fault("good"), name="a.txt")
        await eventually(lambda: not pool.pids)


async def test_an_idle_child_ends_by_itself(fault: Callable[[str], Path]) -> None:
    async with ExtractionPool(size=1, idle_seconds=0.05) as pool:
        await pool.extract(fault("good"), name="a.txt")
        await eventually(lambda: not pool.pids)
        again = await pool.extract(fault("good"), name="a.txt")
        assert again.page_count == 1


async def test_many_files_at_once_share_two_children_and_get_their_own_text(
    tmp_path: Path,
) -> None:
    async def read(number: int) -> str:
        path = tmp_path / f"{number}.txt"
        path.write_text(f"this is file {number}", "utf-8")
        most.append(len(pool.pids))
        return (await pool.extract(path, name=path.name)).pages[0].text

    most: list[int] = []
    async with ExtractionPool(size=2) as pool:
        texts = await asyncio.gather(*(read(number) for number in range(40)))
        most.append(len(pool.pids))
    assert texts == [f"this is file {number}" for number in range(40)]
    assert max(most) <= 2


async def test_a_cancelled_reading_leaves_no_child_behind_and_frees_its_place(
    faulty: ExtractionPool, fault: Callable[[str], Path]
) -> None:
    reading = asyncio.create_task(faulty.extract(fault("sleep"), name="a.txt"))
    await eventually(lambda: bool(faulty.pids))
    (pid,) = faulty.pids
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await eventually(lambda: gone(pid))
    good = await faulty.extract(fault("good"), name="a.txt")
    assert good.page_count == 1


async def test_what_a_library_prints_does_not_break_the_protocol(
    faulty: ExtractionPool, fault: Callable[[str], Path]
) -> None:
    good = await faulty.extract(fault("print_noise"), name="a.txt")
    assert "a sentence" in good.pages[0].text


async def test_closing_ends_idle_and_busy_children(fault: Callable[[str], Path]) -> None:
    pool = ExtractionPool(size=2, command=FAULTY)
    await pool.extract(fault("good"), name="a.txt")
    busy = asyncio.create_task(pool.extract(fault("sleep"), name="a.txt"))
    idle = asyncio.create_task(pool.extract(fault("sleep"), name="a.txt"))
    await eventually(lambda: len(pool.pids) == 2)
    pids = pool.pids
    await pool.aclose()
    assert all(gone(pid) for pid in pids)
    for reading in (busy, idle):
        with pytest.raises(RuntimeError, match="closed"):
            await reading
    with pytest.raises(RuntimeError, match="closed"):
        await pool.extract(fault("good"), name="a.txt")


async def test_no_child_outlives_a_daemon_that_was_killed(
    fault: Callable[[str], Path], tmp_path: Path
) -> None:
    path = fault("sleep_and_say_so")
    script = tmp_path / "daemon.py"
    script.write_text(
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from drivefeed.indexer.extract import ExtractionPool\n"
        "async def main():\n"
        f"    pool = ExtractionPool(size=1, command={FAULTY!r})\n"
        "    reading = asyncio.create_task(pool.extract(Path(sys.argv[1]), name='a.txt'))\n"
        "    while not pool.pids:\n"
        "        await asyncio.sleep(0.01)\n"
        "    print(*pool.pids, flush=True)\n"
        "    await reading\n"
        "asyncio.run(main())\n",
        "utf-8",
    )
    source = Path(sys.modules["drivefeed.indexer"].__file__ or "").parents[2]
    daemon = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        str(path),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    assert daemon.stdout is not None
    pid = int(await daemon.stdout.readline())
    # From here on it neither reads its input nor looks who its parent is.
    await eventually(path.with_suffix(".sleeping").exists)
    assert not gone(pid)
    daemon.kill()
    await daemon.wait()
    await eventually(lambda: gone(pid))


async def test_the_environment_of_a_child_holds_no_secrets(
    fault: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIVEFEED_CLIENT_SECRET", "made-up")
    async with ExtractionPool(size=1) as pool:
        await pool.extract(fault("good"), name="a.txt")
        (pid,) = pool.pids
        assert not [key for key in psutil.Process(pid).environ() if key.startswith("DRIVEFEED")]


async def test_a_file_that_is_not_there_is_no_verdict_and_costs_no_child(
    pool: ExtractionPool, fault: Callable[[str], Path]
) -> None:
    await pool.extract(fault("good"), name="a.txt")
    pids = pool.pids
    for name in ("a.txt", "a.docx", "a.pdf"):
        with pytest.raises(Transient, match="No such file"):
            await pool.extract(Path("/nowhere/at/all"), name=name)
    assert pool.pids == pids


async def test_a_command_that_can_not_be_started_is_no_verdict(
    fault: Callable[[str], Path],
) -> None:
    async with ExtractionPool(size=1, command=("/nowhere/python",)) as pool:
        for _ in range(2):  # the place is free again
            with pytest.raises(Transient, match="could not be started"):
                await pool.extract(fault("good"), name="a.txt")


async def test_one_file_can_be_read_without_a_pool(fault: Callable[[str], Path]) -> None:
    one = await extract(fault("good"), name="a.txt", media_type=None, limits=Limits())
    assert one.media_type == "text/plain"
    assert not new_children()
