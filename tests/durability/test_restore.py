"""A catalog from an earlier time meets a store, an index and a Redis that went on without it.

Everything runs in this process but for what runs in processes of its own anyway: Valkey, the index
and the readers. What came of it is read from outside: bytes, points, rows, and graphsim's log.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.bootstrap import open_parts
from drivefeed.daemon import Daemon
from drivefeed.ports import Stage
from drivefeed.services.certificate import certify
from drivefeed.services.find import find
from drivefeed.setting_sections import EmbeddingSettings, ExtractionSettings
from drivefeed.settings import ConnectionSettings
from graphsim.serving import GraphSim, serve
from support.commands import run_command
from support.embeddings import KEY, EmbeddingService, embedding_service
from support.evidence import objects_in, rows_in, sha256
from support.offline import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from drivefeed.bootstrap import Parts
    from support.valkey import ValkeyServer

REST_SECONDS = 180.0
GRACE_SECONDS = 0.3


@dataclass
class Village:
    """A drive, and what drivefeed needs beside its data folder."""

    sim: GraphSim
    service: EmbeddingService
    valkey: ValkeyServer
    ids: dict[str, str] = field(default_factory=dict)
    content: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, content: str) -> None:
        """Make a file, or give it another content."""
        drive = self.sim.memory
        body = f"The {content} lies in the harbour of {name}.".encode()
        if name in self.ids:
            drive.replace(self.ids[name], body)
        else:
            self.ids[name] = drive.create_file(f"{name}.txt", body).id
        self.content[name] = hashlib.sha256(body).hexdigest()

    def delete(self, name: str) -> str:
        self.sim.memory.delete(self.ids[name])
        return self.content.pop(name)

    def undelete(self, name: str, was: str) -> None:
        self.sim.memory.restore(self.ids[name])
        self.content[name] = was

    def live(self, data: Path) -> dict[str, str]:
        """Return what search shows, by item: SHA-256."""
        rows = rows_in(
            data,
            "SELECT item_id, sha256 FROM documents JOIN imports "
            "ON imports.id = live_import_id AND round = live_round AND state = 'settled'",
        )
        return {row["item_id"]: row["sha256"] for row in rows}

    def unrest(self, data: Path) -> Any:
        """Say what is not as the drive is; nothing where it is, and nothing is under way."""
        wanted = {self.ids[name]: content for name, content in self.content.items()}
        live = self.live(data)
        states = rows_in(
            data,
            "SELECT state, reason, attention, count(*) AS n FROM imports "
            "WHERE state NOT IN ('withdrawn') GROUP BY 1, 2, 3",
        )
        settled = [{"state": "settled", "reason": None, "attention": None, "n": len(wanted)}]
        return None if (live, states) == (wanted, settled) else (live, wanted, states)

    async def rest(self, data: Path) -> None:
        await until(lambda: self.unrest(data) is None, lambda: self.unrest(data))

    def settings(self, data: Path) -> Any:
        drive = self.sim.memory
        return settings_for(
            self.sim,
            data,
            redis_url=self.valkey.url,
            poll_seconds=0.2,
            poll_slowest_seconds=0.2,
            shutdown_seconds=5.0,
            connections=[
                ConnectionSettings(
                    account="sim", drive_id=drive.id, name="all", grace_seconds=GRACE_SECONDS
                )
            ],
            embedding=EmbeddingSettings(
                provider="openai",
                model="first",
                base_url=f"{self.service.url}/v1",
                api_key=KEY,  # type: ignore[arg-type] - pydantic makes it a secret
                dimension=self.service.dimension,
            ),
            extraction=ExtractionSettings(processes=1),
            concurrency=dict.fromkeys((Stage.TRANSFER, Stage.INDEX), 4),
        )

    @asynccontextmanager
    async def daemon(self, data: Path) -> AsyncIterator[Parts]:
        """Run everything over a data folder while the block lasts."""
        async with open_parts(self.settings(data)) as parts:
            daemon = Daemon(parts)
            running = asyncio.create_task(daemon.run())
            ready = asyncio.create_task(daemon.ready.wait())
            await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                ready.cancel()
                running.result()
            try:
                yield parts
            finally:
                daemon.stop()
                await running


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with embedding_service() as running:
        yield running


@pytest.fixture
async def village(service: EmbeddingService, own_valkey: ValkeyServer) -> AsyncIterator[Village]:
    async with serve() as sim:
        yield Village(sim, service, own_valkey)


async def until(ask: Callable[[], bool], what: Callable[[], Any]) -> None:
    try:
        async with asyncio.timeout(REST_SECONDS):
            while not ask():  # noqa: ASYNC110 - rows that another thread writes
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"no rest: {what()}") from None


def restored(data: Path) -> dict[str, Any]:
    (row,) = rows_in(data, "SELECT value FROM facts WHERE name = 'restored'")
    said: dict[str, Any] = json.loads(row["value"])
    return said


async def recovered(data: Path) -> None:
    await until(lambda: restored(data).get("done_at") is not None, lambda: restored(data))


def charges(data: Path) -> list[tuple[str, str, int]]:
    rows = rows_in(data, "SELECT import_id, sha256, pages FROM ledger ORDER BY import_id")
    return [(row["import_id"], row["sha256"], row["pages"]) for row in rows]


async def points_of(parts: Parts) -> dict[tuple[str, int], tuple[bool, int]]:
    return {
        (import_id, round_): (live, count)
        async for import_id, round_, live, count in parts.index.rounds()
    }


async def assert_agreement(village: Village, parts: Parts, data: Path) -> None:
    """Compare bytes, points, rows and the drive with each other."""
    objects = objects_in(data)
    assert sorted(map(sha256, objects.values())) == sorted(village.content.values())
    versions = rows_in(
        data, "SELECT id, document_id, org_id, round, chunks FROM imports WHERE state = 'settled'"
    )
    assert set(objects) == {
        f"{one['org_id']}/{one['document_id']}/{one['id']}/{one['round']}" for one in versions
    }
    assert await points_of(parts) == {
        (one["id"], one["round"]): (True, one["chunks"]) for one in versions
    }
    charged = charges(data)
    assert len({import_id for import_id, _, _ in charged}) == len(charged)
    assert set(village.content.values()) <= {content for _, content, _ in charged}
    (used,) = rows_in(data, "SELECT sum(pages_used) AS pages FROM orgs")
    assert used["pages"] == sum(pages for _, _, pages in charged)
    found = await certify(parts.catalog, parts.source, parts.store, parts.index.rounds())
    assert found.holds, found.as_dict()


def downloads(village: Village, since: int) -> set[str]:
    return {
        name
        for name, item_id in village.ids.items()
        if village.sim.log.count("content", since=since, item=item_id)
    }


async def lost_hour(village: Village, data: Path, bulk: int) -> None:
    """What happens after the backup."""
    for number in range(0, bulk, 2):
        village.write(f"bulk {number}", "new anchor")
    village.write("edited", "new crane")
    village.write("back again", "detour")
    village.delete("deleted")
    for number in range(1, bulk // 5, 2):
        village.delete(f"bulk {number}")
    bytes_of_lost = village.delete("lost and found")
    village.sim.memory.rename(village.ids["renamed"], "now called otherwise.txt")
    village.write("added", "fresh fish")
    village.write("came and went", "short stay")
    await village.rest(data)
    # Both are in their second round now, under other names than the backup knows.
    village.write("back again", "first lighthouse")
    village.undelete("lost and found", bytes_of_lost)
    await village.rest(data)


VARIANTS = ("newer", "empty", "older")


@pytest.mark.timeout(300)
async def test_a_catalog_of_an_hour_ago_converges_and_charges_nothing_twice(
    village: Village, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await restore_an_hour_ago(village, tmp_path, monkeypatch)


@pytest.mark.soak
@pytest.mark.timeout(1800)
async def test_so_does_one_with_many_files(
    village: Village, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await restore_an_hour_ago(village, tmp_path, monkeypatch, bulk=80)


async def restore_an_hour_ago(
    village: Village, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, bulk: int = 0
) -> None:
    monkeypatch.setattr("drivefeed.daemon.spare_the_collector", lambda: None)
    monkeypatch.setattr("drivefeed.keeping.RECOVERY_SECONDS", 0.3)
    for name in ("edited", "deleted", "lost and found", "renamed", "untouched", "calm"):
        village.write(name, "old crane")
    village.write("back again", "first lighthouse")
    for number in range(bulk):
        village.write(f"bulk {number}", "old anchor")
    data, backup, index_then = (
        tmp_path / "data",
        tmp_path / "monday.sqlite",
        tmp_path / "index of then",
    )
    async with village.daemon(data):
        await village.rest(data)
        said = await asyncio.to_thread(
            run_command, "--data", str(data), "backup", str(backup), cwd=tmp_path
        )
        assert "Wrote" in said.stdout
        refused = await asyncio.to_thread(
            run_command, "--data", str(data), "restore", str(backup), cwd=tmp_path, ok=(3,)
        )
        assert "daemon runs" in refused.stderr
    shutil.copytree(data / "index", index_then)
    then = charges(backup_as_data(backup, tmp_path))
    async with village.daemon(data):
        await lost_hour(village, data, bulk)
    # It goes while nobody looks: no delta page after the restore tells of it.
    village.delete("came and went")
    hour = charges(data)
    assert then[0] in hour
    for variant in VARIANTS:
        copy = tmp_path / variant
        shutil.copytree(data, copy, ignore=shutil.ignore_patterns("*.sock", "daemon.json"))
        if variant != "newer":
            shutil.rmtree(copy / "index")
        if variant == "older":
            shutil.copytree(index_then, copy / "index")
        else:
            # The third meets all deliveries of the lost hour.
            village.valkey.flush()
        await asyncio.to_thread(
            run_command, "--data", str(copy), "restore", str(backup), cwd=tmp_path
        )
        assert list(copy.glob("catalog.sqlite.replaced-*"))
        assert charges(copy) == then
        since = village.sim.log.last
        async with village.daemon(copy) as parts:
            await recovered(copy)
            await village.rest(copy)
            await assert_agreement(village, parts, copy)
            for name in ("untouched", "added", "edited"):
                hits = await find(parts.catalog, parts.searcher, f"harbour of {name}", limit=1)
                assert hits, (variant, name)
        # What had its object still was not downloaded again.
        assert downloads(village, since) == {"back again", "lost and found"}, variant
        # The ledger is what it was, but for versions that came and went in the lost hour.
        found = charges(copy)
        assert set(then) <= set(found) <= set(hour), variant
        contents = set(village.content.values())
        assert [one for one in hour if one[1] in contents] == [
            one for one in found if one[1] in contents
        ]


def backup_as_data(backup: Path, home: Path) -> Path:
    folder = home / "backup as data"
    folder.mkdir()
    shutil.copyfile(backup, folder / "catalog.sqlite")
    return folder
