"""Processes seen from outside: whole trees of them, and what one leaves behind."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

REPOSITORY = Path(__file__).resolve().parents[2]
T = TypeVar("T")

PAUSE_SECONDS = 0.1


def until(
    ask: Callable[[], T],
    *,
    seconds: float,
    what: str | Callable[[], str],
    pause: float = PAUSE_SECONDS,
) -> T:
    """Return the first true answer; fail the test after ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        found = ask()
        if found:
            return found
        if time.monotonic() >= deadline:
            words = what if isinstance(what, str) else what()
            raise AssertionError(f"Waited {seconds:.0f} s in vain for: {words}")
        # What is waited for happens in other processes, which set no event of ours.
        time.sleep(pause)


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and all below it; empty when it has ended."""
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; one that has ended and waits for its parent does not."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def named(processes: Iterable[psutil.Process], words: str) -> list[psutil.Process]:
    """Return those whose name holds ``words``; one that ends meanwhile is none of them."""
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if words in process.name():
                found.append(process)
    return found


def around(folder: Path) -> list[psutil.Process]:
    """Return the processes that work in a folder or are told of it in their arguments.

    A child whose parent died belongs to no tree any more; this finds it all the same.
    """
    inside = f"{folder}/"
    found = []
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with suppress(psutil.Error):
            told = any(inside in f"{words}/" for words in process.cmdline())
            if (told or f"{process.cwd()}/".startswith(inside)) and is_alive(process):
                found.append(process)
    return found


def described(processes: Iterable[psutil.Process]) -> list[str]:
    """Name processes for a person."""
    lines = []
    for process in processes:
        with suppress(psutil.Error):
            lines.append(f"{process.pid}: {' '.join(process.cmdline())[:160]}")
    return lines


def environment(**more: str) -> dict[str, str]:
    """Return our environment for a child, without settings of whoever runs the tests."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("DRIVEFEED_")
        and key not in {"REDIS_URL", "DATABASE_URL", "S3_BUCKET", "QDRANT_URL", "QDRANT_API_KEY"}
    }
    return kept | {"PYTHONPATH": str(REPOSITORY / "src"), "COLUMNS": "200"} | more
