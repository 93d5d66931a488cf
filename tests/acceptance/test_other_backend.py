"""A whole drivefeed with another team's backend, which loses its first reply to everything."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from support.daemon import running
from support.processes import until
from support.sample_backend import SECRET, sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = 8


class Losing(sample.Handler):  # type: ignore[misc] - it is loaded from its path
    """Does what it is asked, and hangs up instead of answering: once for each request and job."""

    seen: Counter[str]

    def send(self, status: int, body: dict[str, Any] | None) -> None:
        asked = f"{self.command} {self.path} {(body or {}).get('job_id')}"
        self.seen[asked] += 1
        if status == 200 and "/jobs" in self.path and self.seen[asked] == 1:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        super().send(status, body)


@contextmanager
def losing(backend: Any) -> Iterator[str]:
    bound = type("Bound", (Losing,), {"backend": backend, "seen": Counter()})
    server = sample.Server(("127.0.0.1", 0), bound)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.soak
def test_each_version_is_one_job_and_one_charge_through_kills(tmp_path: Path) -> None:
    folder = tmp_path / "drive"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"plan {number}.txt").write_text(f"Plan {number}: calibrate twice a year.")
    backend = sample.Backend(secret=SECRET, store=tmp_path / "data" / "objects")
    with losing(backend) as url:
        section = "\n".join(
            (
                "[backends.sample]",
                f"url = {json.dumps(url)}",
                f"secret = {json.dumps(SECRET)}",
                'content = "store_key"',
            )
        )
        with running(
            tmp_path, folder, settings=section, connection='backend = "sample"', grace=0.0
        ) as daemon:
            until(
                lambda: len(backend.rows("SELECT 1 FROM jobs")) >= FILES // 2,
                seconds=60,
                what="half of the jobs",
            )
            daemon.kill()
            daemon.start()
            daemon.wait_for_rest(files=FILES)
            (folder / "plan 0.txt").write_text("Plan 0 was changed: calibrate every month.")
            (folder / "plan 1.txt").unlink()

            def followed() -> bool:
                shown = backend.rows("SELECT name FROM jobs WHERE live = 1")
                return len(backend.rows("SELECT 1 FROM jobs")) == FILES + 1 and len(shown) == (
                    FILES - 1
                )

            until(followed, seconds=90, what="the edit and the deletion")
            daemon.wait_for_rest(files=FILES - 1)
            jobs = backend.rows("SELECT key, state, live FROM jobs")
            assert {row["state"] for row in jobs} == {"done"}
            assert sum(row["live"] for row in jobs) == FILES - 1
            charged = Counter(one.import_id for one in daemon.ledger())
            assert charged == Counter(row["key"].rpartition(":")[0] for row in jobs)
            assert daemon.points() == {}, "nothing of it is in our own index"
            daemon.command("verify")
