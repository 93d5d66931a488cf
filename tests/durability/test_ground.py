"""The data folder, or the catalog in it, is taken away under a running process."""

from __future__ import annotations

import shutil
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drivefeed.cli.context import EXIT_TROUBLE
from support.daemon import Daemon
from support.demo import Demo
from support.processes import until
from support.threaded_sim import threaded_sim

if TYPE_CHECKING:
    from pathlib import Path

END_SECONDS = 10.0
BUSY_MACHINE_SECONDS = 12.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def ends_in_words(daemon: Daemon) -> str:
    """Wait for the end that nobody asked for; return what it said."""
    process, daemon.process = daemon.process, None
    assert process is not None
    began = time.monotonic()
    assert process.wait(END_SECONDS + BUSY_MACHINE_SECONDS) == EXIT_TROUBLE, daemon.last_words()
    print(f"ended after {time.monotonic() - began:.1f} s")  # noqa: T201 - the figure is the point
    daemon.assert_nothing_left()
    said = daemon.last_words()
    assert "Traceback" not in said
    return said


def test_the_data_folder_of_a_demo_is_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "one.txt").write_text("One document.\n")
    demo = Demo(tmp_path, folder, tmp_path / "data")
    try:
        demo.start()
        demo.wait_for_rest(files=1)
        demo.tree()
        shutil.rmtree(demo.data, ignore_errors=True)
        # There is work to do while it is not noticed yet.
        (folder / "two.txt").write_text("Another document.\n")
        said = ends_in_words(demo)
    finally:
        demo.end()
    assert f"The data folder '{demo.data}' is not there any more" in said
    assert "drivefeed restore" in said
    assert not demo.data.exists()


def test_the_catalog_of_a_daemon_is_deleted(tmp_path: Path) -> None:
    with threaded_sim() as sim:
        sim.memory.create_file("one.txt", b"One document.")
        served: Any = SimpleNamespace(endpoints=msgspec.to_builtins(sim.endpoints), process=None)
        daemon = Daemon(tmp_path, served)
        try:
            daemon.start()
            until(lambda: daemon.rows("SELECT 1 FROM ledger"), seconds=60, what=daemon.last_words)
            daemon.tree()
            catalog = daemon.data / "catalog.sqlite"
            catalog.unlink()
            sim.memory.create_file("two.txt", b"Another document.")
            said = ends_in_words(daemon)
        finally:
            daemon.end()
    assert f"The catalog '{catalog}' is not there any more" in said
    assert not catalog.exists()
