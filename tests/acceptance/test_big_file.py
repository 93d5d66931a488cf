"""A big file from graphsim to a real S3 server, with the connection cut twice on the way."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import boto3
import psutil
import pytest

from support.daemon import Daemon
from support.processes import until
from support.seaweed import BUCKET, SeaweedServer, new_prefix, own_seaweed  # noqa: F401 - a fixture
from support.sim import Sim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB = 1 << 20
MOST_GROWTH = 64 * MIB
# What was under way in the connection when it was cut may have to be sent again.
MOST_SENT_TWICE = 32 * MIB


class MemoryWatch:
    """The most memory a process tree took, and when the watch began."""

    def __init__(self, pid: int) -> None:
        self._top = psutil.Process(pid)
        self.before = self._now()
        self.most = self.before
        self.samples = 0
        self._over = threading.Event()

    def _now(self) -> int:
        """Resident bytes of all processes; pages that several share count for each of them."""
        total = 0
        for one in [self._top, *self._top.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                total += one.memory_info().rss
        return total

    def run(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, self._now())
            self.samples += 1

    @contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()


def write_big_file(path: Path, size: int) -> str:
    """Write a file in which every mebibyte differs; return its hash."""
    digest = hashlib.sha256()
    block = bytearray(b"The river rose again that night. " * (MIB // 33 + 1))[:MIB]
    with path.open("wb") as file:
        for number in range(size // MIB):
            block[:8] = b"%08d" % number
            file.write(block)
            digest.update(block)
    return digest.hexdigest()


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("size", "cuts"),
    [
        pytest.param(320 * MIB, (90 * MIB, 120 * MIB), id="320 MiB"),
        pytest.param(1 << 30, (300 * MIB, 400 * MIB), id="1 GiB", marks=pytest.mark.soak),
    ],
)
def test_a_big_file_to_s3_with_two_cuts_in_less_than_64_mib(
    tmp_path: Path,
    own_seaweed: SeaweedServer,  # noqa: F811 - the fixture
    size: int,
    cuts: tuple[int, int],
) -> None:
    first_cut, second_cut = cuts
    folder = tmp_path / "OneDrive"
    folder.mkdir()
    (folder / "small.txt").write_text("A small file warms up whatever is made at first use.\n")
    prefix = new_prefix()
    settings = own_seaweed.settings
    bucket = boto3.client(
        "s3",
        endpoint_url=settings["endpoint_url"],
        region_name=settings["region"],
        aws_access_key_id=settings["access_key"],
        aws_secret_access_key=settings["secret_key"],
    )
    bucket.create_bucket(Bucket=BUCKET)
    section = {"bucket": BUCKET, "prefix": prefix, **settings}
    lines = ["[s3]", *(f"{key} = {json.dumps(value)}" for key, value in section.items())]
    sim = Sim(folder, tmp_path / "graphsim")
    sim.start()
    daemon = Daemon(tmp_path, sim, settings="\n".join(lines), interpreter=True)
    try:
        daemon.start()
        daemon.wait_for_rest(files=1)
        sim.fault(kind="truncate", after=first_cut, match={"op": "download", "name": "big.txt"})
        sim.fault(kind="reset", after=second_cut, match={"op": "download", "name": "big.txt"})
        big = tmp_path / "big.txt"
        digest = write_big_file(big, size)
        assert daemon.process is not None
        watch = MemoryWatch(daemon.process.pid)
        began = time.monotonic()
        with watch.watching():
            big.rename(folder / "big.txt")
            row = until(lambda: _stored(daemon), seconds=200, what=daemon.last_words)
            seconds = time.monotonic() - began
        growth = watch.most - watch.before
        daemon.wait_for_rest(files=2, seconds=120)
        requests = [one for one in sim.requests(op="download") if one["name"] == "big.txt"]
        sent = sum(one["bytes"] for one in requests)
        print(  # noqa: T201 - the figures are the point
            f"\n{size >> 20} MiB in {seconds:.0f} s; the tree took {watch.before >> 20} MiB before "
            f"and {growth >> 20} MiB more at most ({watch.samples} looks); "
            f"{(sent - size) >> 20} MiB sent twice; ranges {[one['range'] for one in requests]}"
        )
        assert row["sha256"] == digest
        assert _hash_of_object(bucket, f"{prefix}/{row['key']}") == (size, digest)
        assert [one["fault"] for one in requests] == ["truncate", "reset", None]
        assert requests[0]["range"] is None
        starts = [int(one["range"].removeprefix("bytes=").split("-")[0]) for one in requests[1:]]
        assert first_cut - MOST_SENT_TWICE <= starts[0] <= first_cut
        cut = starts[0] + second_cut
        assert cut - MOST_SENT_TWICE <= starts[1] <= cut
        assert size <= sent <= size + 2 * MOST_SENT_TWICE
        assert watch.samples > 20, "memory was hardly looked at"
        assert growth < MOST_GROWTH, f"{growth >> 20} MiB"
        # A person is told why such a file is not searchable.
        told = {one["path"]: one["why"] for one in daemon.json("imports")}
        assert told["big.txt"] == "too_large"
        daemon.stop()
    finally:
        daemon.end()
        sim.stop()


def _stored(daemon: Daemon) -> dict[str, str] | None:
    rows = daemon.rows(
        """
        SELECT imports.org_id || '/' || document_id || '/' || imports.id || '/' || round AS key,
               sha256
        FROM imports JOIN documents ON documents.id = document_id
        WHERE documents.name = 'big.txt' AND state <> 'discovered'
        """
    )
    return rows[0] if rows else None


def _hash_of_object(bucket: object, key: str) -> tuple[int, str]:
    body = bucket.get_object(Bucket=BUCKET, Key=key)["Body"]  # type: ignore[attr-defined]  # boto3 makes its methods
    digest, size = hashlib.sha256(), 0
    while piece := body.read(MIB):
        digest.update(piece)
        size += len(piece)
    return size, digest.hexdigest()
