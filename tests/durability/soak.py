"""Random kills of every part under a stream of edits, moves and deletions; then all is counted.

Usage: python tests/durability/soak.py [--minutes 20] [--seed N] [--report bench/results/soak.md]

It ends by itself, with exit code 1 where an invariant is broken. The same seed gives the same
choices; what they meet is another matter.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, suppress
from pathlib import Path
from sqlite3 import OperationalError
from typing import TYPE_CHECKING

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from drivefeed.stores import S3Store
from durability.evidence import broken_in
from durability.soak_hands import Hands
from durability.soak_report import report
from support.daemon import Daemon
from support.embeddings import KEY, embedding_service
from support.evidence import files_below, sha256, unrest_in
from support.processes import until
from support.seaweed import BUCKET, new_prefix, running_seaweed
from support.sim import Sim

if TYPE_CHECKING:
    from support.seaweed import SeaweedServer

ROOT = Path(__file__).resolve().parents[2]
KILL_CHANCE = 0.12
REST_SECONDS = 600.0
CHILDREN = {"queue server": "valkey", "vector index": "edge_child", "extraction": "extract"}
_PATHS = """
SELECT items.name AS name, parent.name AS folder, imports.sha256 AS sha256 FROM documents
JOIN imports ON imports.id = documents.live_import_id AND imports.round = documents.live_round
JOIN items ON items.drive_id = documents.drive_id AND items.item_id = documents.item_id
JOIN items AS parent ON parent.drive_id = items.drive_id AND parent.item_id = items.parent_id
"""


class Soak:
    """Everything that runs, and what became of each kill."""

    def __init__(self, home: Path, chance: random.Random, seaweed: SeaweedServer, url: str) -> None:
        self.chance = chance
        self.parts = ("drivefeed", "graphsim", "object store", *CHILDREN)
        self.seaweed = seaweed
        self.folder = home / "Drive"
        self.hands = Hands(self.folder, chance)
        self.sim = Sim(self.folder, home / "graphsim")
        self.sim.start()
        self.settings = "\n".join(
            [
                *("[s3]", f'bucket = "{BUCKET}"', f'prefix = "{new_prefix()}"'),
                *(f"{key} = {json.dumps(value)}" for key, value in seaweed.settings.items()),
                *("[embedding]", 'provider = "openai"', 'model = "soak"', "dimension = 32"),
                *(f'base_url = "{url}/v1"', f'api_key = "{KEY}"'),
            ]
        )
        self.home = home
        self.daemon = self._daemon()
        self.daemon.start()
        self.kills: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.recovered: dict[str, list[float]] = defaultdict(list)
        self._open: list[tuple[str, float, int]] = []

    def _daemon(self) -> Daemon:
        return Daemon(
            self.home,
            self.sim,
            poll=1.0,
            grace=5.0,
            settings=self.settings,
            connection="brake_count = 100000\nbrake_floor = 100000",
            interpreter=True,
        )

    def step(self) -> None:
        """Work in the folder, and now and then kill something."""
        self.hands.work()
        self._look()
        if self.chance.random() < KILL_CHANCE:
            self._kill(self.chance.choice(self.parts))
        time.sleep(self.chance.random() * 0.8)

    def _kill(self, part: str) -> None:
        at, last = time.monotonic(), self._last_event()
        match part:
            case "drivefeed":
                self.daemon.kill()
                self.daemon.start(wait=False)
            case "graphsim":
                assert self.sim.process is not None
                self.sim.process.kill()
                self.sim.process.wait()
                time.sleep(self.chance.random() * 2)
                self.sim.start()
                # It serves at other ports now, which only settings can tell.
                self.daemon.kill()
                self.daemon = self._daemon()
                self.daemon.start(wait=False)
            case "object store":
                self.seaweed.kill()
                time.sleep(self.chance.random() * 2)
                self.seaweed.start()
            case _:
                found = self._children(CHILDREN[part])
                if not found:
                    self.missed[part] += 1
                    return
                with suppress(psutil.NoSuchProcess):
                    self.chance.choice(found).send_signal(signal.SIGKILL)
        self.kills[part] += 1
        self._open.append((part, at, last))

    def _children(self, words: str) -> list[psutil.Process]:
        found = []
        for one in self.daemon.tree()[1:]:
            with suppress(psutil.Error):
                if words in " ".join(one.cmdline()):
                    found.append(one)
        return found

    def _last_event(self) -> int:
        with suppress(OperationalError):
            return int(
                self.daemon.rows("SELECT coalesce(max(id), 0) AS n FROM import_events")[0]["n"]
            )
        return 0

    def _look(self) -> None:
        """Note which kills were followed by work that got further."""
        last = self._last_event()
        for part, at, before in self._open:
            if last > before:
                self.recovered[part].append(time.monotonic() - at)
        self._open = [one for one in self._open if last <= one[2]]

    def rests(self) -> bool:
        """Whether what is live is what is on the drive, and nothing is due."""
        with suppress(OperationalError):
            files = files_below(self.folder)
            on_disk = Counter(
                (path.parent.name, path.name, sha256(path)) for path in files.values()
            )
            rows = self.daemon.rows(_PATHS)
            live = Counter((row["folder"], row["name"], row["sha256"]) for row in rows)
            due = self.daemon.rows(
                "SELECT 1 FROM reminders WHERE due_at NOT NULL AND stage <> 'discover'"
            )
            return live == on_disk and not due and not unrest_in(self.daemon.data, len(files))
        return False

    def asking(self) -> list[str]:
        """Return what waits for a person: files that were under way at five deaths."""
        rows = self.daemon.rows("SELECT attention FROM imports WHERE attention NOT NULL")
        return [row["attention"] for row in rows]

    def comes_to_rest(self) -> int:
        """Wait for rest as an operator would, who tries again what asks; return how many asked."""
        asked = 0

        def rests() -> bool:
            nonlocal asked
            if waiting := self.asking():
                asked += len(waiting)
                self.daemon.command("retry", ok=(0, 1))
            return self.rests()

        until(rests, seconds=REST_SECONDS, what=self.daemon.last_words, pause=1.0)
        return asked

    def close(self) -> None:
        """End everything that is left."""
        self.daemon.end()
        self.sim.stop()


async def make_bucket(seaweed: SeaweedServer) -> None:
    """Make the bucket, which drivefeed itself never does."""
    store = S3Store(BUCKET, **seaweed.settings)
    await store.ensure_bucket()
    await store.aclose()


def say(words: str) -> None:
    """Tell whoever waits."""
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def kept(*folders: Path) -> Path:
    """Copy folders to where they stay, for whoever looks for the reason; return where that is."""

    def sockets(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name).is_socket()]

    place = Path(tempfile.mkdtemp(prefix="drivefeed-soak-broken-"))
    for folder in folders:
        shutil.copytree(folder, place / folder.name, ignore=sockets)
    return place


def main() -> int:
    """Run, print and write the report; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--report", type=Path, default=ROOT / "bench" / "results" / "soak.md")
    asked_for = parser.parse_args()
    seed = asked_for.seed if asked_for.seed is not None else random.SystemRandom().randrange(10**6)
    say(f"seed {seed}")
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="drivefeed-soak-")))
        seaweed = stack.enter_context(running_seaweed())
        service = stack.enter_context(embedding_service(dimension=32))
        asyncio.run(make_bucket(seaweed))
        soak = Soak(home, random.Random(seed), seaweed, service.url)
        stack.callback(soak.close)
        ends = time.monotonic() + 60 * asked_for.minutes
        while time.monotonic() < ends:
            soak.step()
        say(f"{sum(soak.kills.values())} kills; waiting for rest")
        began = time.monotonic()
        people = soak.comes_to_rest()
        rest = time.monotonic() - began
        soak.daemon.stop()
        broken = broken_in(soak.daemon.data)
        if broken:
            say(f"What it left is kept in {kept(home, seaweed.folder)}.")
        words = report(
            soak, seed=seed, minutes=asked_for.minutes, rest=rest, asked=people, broken=broken
        )
    asked_for.report.parent.mkdir(parents=True, exist_ok=True)
    asked_for.report.write_text(words, encoding="utf-8")
    say(words)
    say(json.dumps({"kills": soak.kills, "broken": len(broken)}))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
