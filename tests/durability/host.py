"""A process that has drivefeed loaded and makes lives of it: each is a fork that runs one command.

    python -m durability.host

Reads jobs from its input, one JSON object a line, and answers in the same way. Starting an
interpreter and loading everything takes many times as long as a life does.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import signal
import ssl
import sys
import time
from typing import Any

from durability.places import Places
from durability.wrapping import wrap_ports
from support.forked_children import (
    INDEX,
    LOADED,
    READER,
    end_with_parent,
    fork_children,
    to_its_end,
)
from support.made_once import keep_version_of_redis

WARM = (
    *("drivefeed.cli", "drivefeed.daemon", "drivefeed.assembly", "drivefeed.bootstrap"),
    *("durability.memories", "durability.scenes", "durability.scenes_astray"),
    *("durability.scenes_index", "durability.scenes_kept", "durability.scenes_leaving"),
    "durability.scenes_told",
)
PAUSE_SECONDS = 0.01


def live(job: dict[str, Any]) -> None:
    """Run one command or function as if this process had just been started for it."""
    end_with_parent()
    os.setsid()
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(job["home"])
    os.environ.update(job["environment"])
    places = Places.of(job)
    bootstrap = importlib.import_module("drivefeed.bootstrap")
    bootstrap.no_checkpoint = places  # type: ignore[attr-defined]
    for dotted, value in job["tuned"].items():
        owner, name = dotted.rsplit(".", 1)
        # JSON has no keys that are numbers.
        given = {int(key): one for key, one in value.items()} if isinstance(value, dict) else value
        setattr(importlib.import_module(owner), name, given)
    hurry(job["tick_seconds"])
    wrap_ports(places)
    fork_children(INDEX, READER)
    try:
        run(job)
    finally:
        places.end()


def hurry(tick_seconds: float) -> None:
    """Have what happens on a schedule happen at least that often."""
    # Nobody is spoken to but graphsim, whose authority is in the settings; loading the usual
    # ones is a third of what a life costs.
    httpx = importlib.import_module("httpx")
    httpx.create_ssl_context = lambda: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # type: ignore[attr-defined]
    # A life of a second leaves nothing to collect.
    daemon = importlib.import_module("drivefeed.daemon")
    daemon.spare_the_collector = lambda: None  # type: ignore[attr-defined]
    schedule = importlib.import_module("drivefeed.services.schedule").Schedule
    every = schedule._every
    table = importlib.import_module("drivefeed.queue.table")
    table.QueueSpec.backoff = lambda *_: 50
    schedule._every = lambda self, seconds, name, do: every(
        self, min(seconds, tick_seconds), name, do
    )


def run(job: dict[str, Any]) -> None:
    if "scene" in job:
        module, name = job["scene"].split(":")
        getattr(importlib.import_module(module), name)(**job["given"])
        return
    sys.argv = ["drivefeed", *job["words"]]
    importlib.import_module("drivefeed.cli").main()


def fork(job: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    os._exit(to_its_end(functools.partial(live, job)))


def wait(pid: int, seconds: float) -> dict[str, Any]:
    """Return how a life ended, and its processor time; None for the status while it lasts."""
    deadline = time.monotonic() + seconds
    while True:
        found, status, used = os.wait4(pid, os.WNOHANG)
        if found:
            return {
                "status": os.waitstatus_to_exitcode(status),
                "cpu": used.ru_utime + used.ru_stime,
            }
        if time.monotonic() >= deadline:
            return {"status": None, "cpu": 0.0}
        time.sleep(PAUSE_SECONDS)


def learn(names: list[str]) -> int:
    """Load what a life had to load for itself, so that the next ones need not."""
    loaded = 0
    for name in names:
        if name not in sys.modules:
            try:
                importlib.import_module(name)
                loaded += 1
            except ImportError:
                continue
    return loaded


def main() -> None:
    """Serve jobs until the input ends."""
    for name in (*WARM, *LOADED):
        importlib.import_module(name)
    keep_version_of_redis()
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        asked = json.loads(line)
        match asked.pop("do"):
            case "fork":
                answer: Any = {"pid": fork(asked)}
            case "wait":
                answer = wait(asked["pid"], asked["seconds"])
            case "learn":
                answer = {"loaded": learn(asked["names"])}
            case other:
                raise ValueError(other)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
