"""Many imports at once against one page limit, with failures and kills."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import func, select

from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.quota import balance_of
from drivefeed.catalog.quota_limits import Limit, set_limit, turn_due
from drivefeed.catalog.recount import recount
from drivefeed.catalog.tables import imports, reminders
from drivefeed.catalog.usage import usage_of
from drivefeed.catalog.usage_tables import ledger, reservations
from drivefeed.catalog.waiting import clear
from drivefeed.domain.metering import hold
from drivefeed.domain.reasons import Reason
from drivefeed.system import SystemClock, SystemIds
from support.clock import CountedIds, ManualClock, no_checkpoint
from support.processes import environment
from support.storm import Fate, KilledHereError, Player, random_name
from unit.catalog.rig import ROOT, Rig, file, folder, gone

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.metering import Balance
    from drivefeed.domain.remote import RemoteItem


class Deaths:
    """Kills at a checkpoint now and then, once it is allowed to."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.allowed = False
        self.count = 0

    def __call__(self, name: str) -> None:
        if self.allowed and self._chance.random() < 0.03:
            self.count += 1
            raise KilledHereError(name)


def listed(names: dict[str, str]) -> list[RemoteItem]:
    return [file(key, "docs", content=key, name=name) for key, name in names.items()]


async def balance_now(catalog: Catalog, org_id: str) -> tuple[Balance, int]:
    """The balance, and the pages that no limit could have known."""
    async with catalog.read() as connection:
        balance = await balance_of(connection, org_id)
        overage = await connection.scalar(select(func.sum(ledger.c.overage)))
    return balance, int(overage or 0)


async def examine(rig: Rig, names: dict[str, str], limit: int, *, kills: int) -> None:
    """What must hold once everything is at rest."""
    (books,) = await recount(rig.catalog)
    assert books.drift == []
    (usage,) = await usage_of(rig.catalog, rig.org_id)
    assert usage.held == 0
    assert await rig.rows(reservations, reservations.c.state == "held") == []
    entries = await rig.rows(ledger)
    assert len({row["import_id"] for row in entries}) == len(entries)
    by_import = {row["id"]: row for row in await rig.rows(imports)}
    counted = 0
    settled = {
        (row["import_id"], row["state"]): row["pages"] for row in await rig.rows(reservations)
    }
    for row in entries:
        key = by_import[row["import_id"]]["version_key"].removeprefix("quickxor:")
        fate = Fate.of(names[key])
        assert row["pages"] == fate.pages
        held = settled[row["import_id"], "settled"]
        assert row["overage"] == max(0, fate.pages - held)
        if fate.counted:
            assert row["overage"] == 0
        counted += row["pages"] - row["overage"]
    assert counted <= limit
    balance, overage = await balance_now(rig.catalog, rig.org_id)
    assert balance.used - overage == counted
    # Whoever still waits does not fit: nobody was forgotten in the line.
    waiting = [row for row in by_import.values() if row["hold"] == Reason.QUOTA]
    wanted = {row["import_id"]: row for row in await rig.rows(reservations)}
    for row in waiting:
        need = wanted[row["id"]]
        assert not hold(balance, need["wanted"], exact=need["counted"]), row
    assert waiting, "the limit was never reached"
    over = sum(row["overage"] > 0 for row in entries)
    print(  # noqa: T201 - the figures are the point
        f"\n{len(names)} files, {kills} kills: {counted:,} of {limit:,} pages held and charged, "
        f"{len(entries)} entries, {over} of them with a marked overage, {len(waiting)} wait"
    )


@pytest.mark.parametrize(
    "catalog_url", ["sqlite", pytest.param("postgres", marks=pytest.mark.soak)], indirect=True
)
@pytest.mark.parametrize("seed", [1])
async def test_a_storm_in_one_process(seed: int, catalog_url: str) -> None:
    chance = random.Random(seed)
    deaths = Deaths(random.Random(seed + 1))
    clock = ManualClock()
    catalog = await open_catalog(catalog_url, clock=clock, ids=CountedIds(), checkpoint=deaths)
    rig = await Rig.make(catalog)
    await rig.connect()
    await rig.scan()
    count, limit = 30, 700
    names = {f"f{number}": random_name(number, chance, most=120) for number in range(count)}
    await rig.enumerate([ROOT, folder("docs"), *listed(names)])
    await set_limit(catalog, rig.org_id, Limit(limit), actor="test")
    deaths.allowed = True

    async def play(name: str) -> None:
        player = Player(catalog, name, random.Random(f"{seed}{name}"))
        idle = 0
        while idle < 3:
            clock.turn(ms=2)
            try:
                idle = 0 if await player.step() else idle + 1
            except KilledHereError:
                continue
            balance, overage = await balance_now(catalog, rig.org_id)
            assert balance.used - overage + balance.held <= limit

    await asyncio.gather(*(play(name) for name in "abcd"))
    deaths.allowed = False
    for key in chance.sample(sorted(names), 10):
        await rig.round(gone(key))
    for row in await rig.rows(imports, imports.c.attention.is_not(None)):
        await clear(catalog, row["id"])
    while await turn_due(catalog):
        clock.turn(ms=1)
    clock.turn(days=8)
    await asyncio.gather(*(play(name) for name in "ef"))
    for row in await rig.rows(imports, imports.c.attention.is_not(None)):
        await rig.round(gone(row["version_key"].removeprefix("quickxor:")))
    clock.turn(days=8)
    await asyncio.gather(*(play(name) for name in "gh"))
    assert deaths.count > 5
    await examine(rig, names, limit, kills=deaths.count)
    await catalog.aclose()


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_storm_of_processes_that_are_killed(catalog_url: str) -> None:
    chance = random.Random(7)
    catalog = await open_catalog(
        catalog_url, clock=SystemClock(), ids=SystemIds(), checkpoint=no_checkpoint
    )
    rig = await Rig.make(catalog)
    await rig.connect()
    await rig.scan()
    count, limit = 200, 10_000
    names = {f"f{number}": random_name(number, chance, most=250) for number in range(count)}
    await rig.enumerate([ROOT, folder("docs"), *listed(names)])
    await set_limit(catalog, rig.org_id, Limit(limit), actor="test")
    worker = str(Path(__file__).with_name("storm_worker.py"))

    def start(number: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, worker, f"worker-{number}", catalog_url],
            env=environment() | {"PYTHONPATH": ":".join(sys.path)},
            stderr=subprocess.DEVNULL,
        )

    running = [start(number) for number in range(4)]
    started, kills, calm_since = len(running), 0, time.monotonic()
    deadline = time.monotonic() + 600
    try:
        while time.monotonic() - calm_since < 3.0:
            assert time.monotonic() < deadline, "it never comes to rest"
            await asyncio.sleep(0.3)
            balance, overage = await balance_now(catalog, rig.org_id)
            assert balance.used - overage + balance.held <= limit
            if kills < 40:
                victim = chance.randrange(len(running))
                running[victim].kill()
                running[victim].wait()
                kills, started = kills + 1, started + 1
                running[victim] = start(started)
            for row in await rig.rows(imports, imports.c.attention.is_not(None)):
                await clear(catalog, row["id"])
            await turn_due(catalog)
            if kills < 40 or await _due(catalog):
                calm_since = time.monotonic()
    finally:
        for one in running:
            one.kill()
            one.wait()
    await examine(rig, names, limit, kills=kills)
    await catalog.aclose()


async def _due(catalog: Catalog) -> int:
    async with catalog.read() as connection:
        found = await connection.scalar(
            select(func.count()).where(
                reminders.c.due_at <= catalog.clock.now(),
                reminders.c.stage.not_in(["discover", "admit"]),
            )
        )
    return int(found or 0)
