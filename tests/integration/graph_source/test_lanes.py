"""Which lane the work of the stages takes, and that a throttle costs none of it anything."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from drivefeed.catalog.sources import wake_due_drives
from drivefeed.catalog.tables import drives, imports
from drivefeed.declared_folders import connect_all
from drivefeed.domain.budget import Lane
from drivefeed.settings import ConnectionSettings
from graphsim.serving import serve
from support.offline import Job, Offline, offline


def noted(played: Offline, monkeypatch: pytest.MonkeyPatch) -> list[Lane]:
    (account,) = played.parts.accounts.values()
    gate = played.parts.source.gates.of(account)
    taken: list[Lane] = []
    enter = gate.enter

    async def entering(cost: int, lane: Lane, *, patience: float = 5) -> None:
        taken.append(lane)
        await enter(cost, lane, patience=patience)

    monkeypatch.setattr(gate, "enter", entering)
    return taken


async def due(played: Offline) -> None:
    """Return when the drive is to be looked at again; the clock is the real one."""
    async with asyncio.timeout(30):
        while not await wake_due_drives(played.parts.catalog):  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.02)


async def test_changes_go_before_a_first_import_and_retries_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(state=tmp_path / "sim") as sim:
        sim.memory.create_file("old.txt", b"old")
        connection = ConnectionSettings(account="sim", drive_id=sim.memory.id, name="all")
        wanted = {"connections": [connection], "poll_seconds": 0.2}
        async with offline(sim, tmp_path / "data", **wanted) as played:
            await connect_all(played.parts)
            taken = noted(played, monkeypatch)
            await played.play()
            first = [Lane.BACKFILL, Lane.BACKFILL, Lane.CHANGES]
            assert taken == first, "a listing, a file of it, and the round after the scan"
            taken.clear()
            sim.memory.create_file("new.txt", b"new")
            await due(played)
            await played.play()
            assert taken == [Lane.CHANGES] * 2, "a page of changes, and a file of it"
            taken.clear()

            monkeypatch.setattr("support.offline.Job", partial(Job, attempt=2, attempts=5))
            sim.memory.create_file("again.txt", b"again")
            await due(played)
            await played.play()
            assert taken == [Lane.CHANGES, Lane.RETRIES], "its second attempt"


async def test_a_throttle_fails_nothing_and_asks_nobody(tmp_path: Path) -> None:
    async with serve(state=tmp_path / "sim") as sim:
        sim.memory.create_file("one.txt", b"one")
        connection = ConnectionSettings(account="sim", drive_id=sim.memory.id, name="all")
        async with offline(sim, tmp_path / "data", connections=[connection]) as played:
            await connect_all(played.parts)
            sim.faults.add("throttle", op="content", retry_after="300")
            # A job of this kind has one attempt: with that gone, a person would be asked.
            await played.play()
            async with played.parts.catalog.read() as reading:
                row = (await reading.execute(select(imports))).mappings().one()
                assert (row["state"], row["hold"]) == ("discovered", "throttled")
                assert row["attention"] is None
                drive = (await reading.execute(select(drives))).mappings().one()
                assert drive["attention"] is None
            asked = sim.log.count("content")
            await played.play()
            assert sim.log.count("content") == asked == 1
