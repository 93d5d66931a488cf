"""The child process of the embedded index: killed, orphaned, busy, refused."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from drivefeed.domain.errors import NeedsAttention, PartDown
from drivefeed.indexer.vectors.edge import EdgeIndex
from drivefeed.ports import Point, SearchFilter
from support.children import new_children, servers_of_the_session  # noqa: F401 - a fixture

WRITER = Path(__file__).with_name("writer.py")
SOURCES = Path(__file__).parents[3] / "src"


def start_writer(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
        start_new_session=True,
    )


def acknowledged(writer: subprocess.Popen[str], at_least: int) -> int:
    """Read until that many writes were acknowledged; return the last one's number."""
    assert writer.stdout is not None
    for line in writer.stdout:
        if int(line) >= at_least:
            return int(line)
    raise AssertionError("the writer ended")


def later_ones(writer: subprocess.Popen[str], last: int) -> int:
    """Return the number of the last write acknowledged before the writer was killed."""
    assert writer.stdout is not None
    complete = [line for line in writer.stdout if line.endswith("\n")]
    return int(complete[-1]) if complete else last


def a_point(number: int) -> Point:
    return Point(
        point_id=f"00000000-0000-0000-0000-{number:012}",
        vector=(1.0, float(number)),
        text=f"word{number}",
        org_id="o",
        document_id="d",
        import_id="i",
        round=1,
        seq=1,
        chunk=number,
        page=1,
        name="n",
        media_type="text/plain",
        folders=(),
        live=True,
    )


@pytest.mark.parametrize("victims", ["parent and child", "parent alone", "child alone"])
async def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path, victims: str) -> None:
    last = -1
    for turn in range(2):
        folder = tmp_path / f"index-{turn}"
        writer = start_writer(folder)
        last = await asyncio.to_thread(acknowledged, writer, 15 + 10 * turn)
        if victims == "parent and child":
            os.killpg(writer.pid, signal.SIGKILL)
        elif victims == "parent alone":
            os.kill(writer.pid, signal.SIGKILL)
        else:
            (child,) = psutil.Process(writer.pid).children()
            child.kill()
        await asyncio.to_thread(writer.wait, 30)
        last = await asyncio.to_thread(later_ones, writer, last)
        index = EdgeIndex(folder, model_name="m", dimension=4)
        rows = {row[0]: row[1:] async for row in index.rounds()}
        assert len(rows) - last in {1, 2}, "all acknowledged, and at most the one under way"
        assert all(rows[f"i{number}"] == (1, True, 20) for number in range(last + 1))
        where = SearchFilter(org_id="o")
        hits = await index.search(vector=(1, 0, 0, 0), text=f"batch{last}", where=where, limit=1)
        assert hits[0].point.import_id == f"i{last}"
        await index.aclose()


async def test_the_next_call_after_the_child_died_starts_another(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path, model_name="m", dimension=2)
    await index.upsert([a_point(n) for n in range(10)])
    (child,) = new_children()
    child.kill()
    child.wait(10)
    with pytest.raises(PartDown, match="ended"):
        await index.count()
    assert await index.count() == 10
    await index.aclose()
    assert new_children() == []


async def test_calls_under_way_fail_when_the_child_dies(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path, model_name="m", dimension=2)
    await index.check()
    (child,) = new_children()
    child.suspend()
    calls = [asyncio.create_task(index.count()) for _ in range(5)]
    await asyncio.sleep(0)
    child.kill()
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [PartDown] * 5
    await index.aclose()


async def test_a_cancelled_call_disturbs_no_other(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path, model_name="m", dimension=2)
    await index.upsert([a_point(n) for n in range(10)])
    for _ in range(20):
        call = asyncio.create_task(index.rounds().__anext__())
        await asyncio.sleep(0)
        call.cancel()
        assert await index.count() == 10
    await index.aclose()


async def test_a_second_process_gets_a_sentence(tmp_path: Path) -> None:
    first = EdgeIndex(tmp_path, model_name="m", dimension=2)
    await first.upsert([a_point(1)])
    second = EdgeIndex(tmp_path, model_name="m", dimension=2)
    with pytest.raises(NeedsAttention, match="Another process is using the vector index in"):
        await second.check()
    await second.aclose()
    assert await first.count() == 1
    await first.aclose()


async def test_ctrl_c_of_the_group_leaves_the_child_to_its_parent(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path, model_name="m", dimension=2)
    await index.check()
    (child,) = new_children()
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGTERM)
    await index.upsert([a_point(1)])
    await index.aclose()
    assert not child.is_running()
    with pytest.raises(PartDown, match="closed"):
        await index.count()


async def test_writing_does_not_stop_the_event_loop(tmp_path: Path) -> None:
    """In a thread, a flush or a vacuum would: the library keeps Python's global lock."""
    index = EdgeIndex(tmp_path, model_name="m", dimension=2)
    await index.check()
    (child,) = new_children()
    child.suspend()
    call = asyncio.create_task(index.upsert([a_point(n) for n in range(2_000)]))
    turns = 0
    deadline = time.monotonic() + 30
    while turns < 1_000 and time.monotonic() < deadline:
        await asyncio.sleep(0)
        turns += 1
    assert turns == 1_000
    assert not call.done(), "a write is acknowledged by the child alone"
    child.resume()
    await call
    assert await index.count() == 2_000
    await index.aclose()


def test_nothing_is_loaded_or_started_before_the_first_call(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from drivefeed.indexer.vectors.edge import EdgeIndex\n"
        "from drivefeed.indexer.vectors.server import ServerIndex\n"
        f"EdgeIndex(Path({str(tmp_path / 'x')!r}), model_name='m', dimension=2)\n"
        "ServerIndex('http://127.0.0.1:1', model_name='m', dimension=2)\n"
        "print({'qdrant_edge', 'qdrant_client', 'numpy'} & set(sys.modules))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "set()\n"
    assert not (tmp_path / "x").exists()
