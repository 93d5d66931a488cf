"""An extraction child whose reader misbehaves on demand: the content of the file says how."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NoReturn

from drivefeed.indexer.extract import child
from drivefeed.indexer.extract.readers import read_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from drivefeed.indexer.model import Extraction, Limits


def segfault() -> None:
    ctypes.string_at(0)


def spin() -> NoReturn:
    while True:
        pass


def sleep() -> NoReturn:
    while True:
        time.sleep(60)


def allocate() -> NoReturn:
    hoard = []
    while True:
        hoard.append(bytearray(16 << 20))


def abort_for_memory() -> None:
    os.write(2, b"memory allocation of 17592186044416 bytes failed\n")
    os.abort()


def raise_error() -> NoReturn:
    raise KeyError("a bug in a library")


def miss_a_library() -> NoReturn:
    raise ImportError("lexbor.so: failed to map segment from shared object")


def spawn_and_sleep() -> NoReturn:
    grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    os.write(2, f"grandchild {grandchild.pid}\n".encode())
    sleep()


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def print_noise() -> None:
    print("noise on standard output", flush=True)  # noqa: T201 - the point of the test


def compute_longer(more_time: Callable[[], None]) -> None:
    more_time()
    while time.process_time() < 4:  # the limit that this is tried with is one second
        pass


def ask_forever(more_time: Callable[[], None]) -> NoReturn:
    while True:
        more_time()
        time.sleep(0.05)


def be_killed_once(marker: Path) -> None:
    if not marker.exists():
        # Nothing may be written by a child beyond its limit, but an empty file is none.
        marker.touch()
        be_killed()


def read(
    path: Path,
    *,
    name: str,
    media_type: str | None,
    limits: Limits,
    more_time: Callable[[], None],
) -> Extraction:
    fault = path.read_text("utf-8").split("\n")[0]
    if fault == "be_killed_once":
        be_killed_once(path.with_suffix(".killed"))
    elif fault == "sleep_and_say_so":
        path.with_suffix(".sleeping").touch()
        sleep()
    elif fault in ("compute_longer", "ask_forever"):
        globals()[fault](more_time)
    elif fault in globals():
        globals()[fault]()
    return read_file(path, name=name, media_type=media_type, limits=limits, more_time=more_time)


if __name__ == "__main__":
    sys.exit(child.main(read))
