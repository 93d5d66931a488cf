"""One organization's backlog and another's single file, from the catalog into a real Redis."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import func, insert, select, text, update

from drivefeed.catalog import reminders
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.tables import reminders as rows
from drivefeed.domain.gate import OPEN, Gate
from drivefeed.domain.reasons import Reason
from drivefeed.ports import Stage
from drivefeed.services.relay import Relay
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from support.publish_jobs import PREFIX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from drivefeed.catalog.engine import Catalog
    from drivefeed.queue import BullmqQueue
    from support.valkey import ValkeyServer

WINDOW = 20
BACKLOG = 20_000
LATER = 5_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def catalog(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Catalog]:
    opened = await open_catalog(
        new_catalog(tmp_path / "catalog.db"),
        clock=clock,
        ids=CountedIds(),
        checkpoint=no_checkpoint,
    )
    yield opened
    await opened.aclose()


@pytest.fixture
def queue(make_queue: Callable[..., BullmqQueue], own_valkey: ValkeyServer) -> BullmqQueue:
    return make_queue(own_valkey.url)


def reminder(org_id: str, subject: str, due_at: int, **more: Any) -> dict[str, Any]:
    payload = {
        "schema": 1,
        "org_id": org_id,
        "document_id": f"d-{subject}",
        "import_id": subject,
        "round": 1,
    }
    row = {"subject_id": subject, "org_id": org_id, "stage": Stage.TRANSFER.value}
    plain = {"due_at": due_at, "payload": json.dumps(payload), "lane": reminders.LANE_BACKFILL}
    return row | plain | more


async def fill(catalog: Catalog, found: list[dict[str, Any]]) -> None:
    async with catalog.write("fill") as connection:
        for start in range(0, len(found), 5_000):
            await connection.execute(insert(rows), found[start : start + 5_000])


class Desk:
    """Takes jobs as a worker would, in the order in which Redis hands them out."""

    def __init__(self, catalog: Catalog, server: ValkeyServer) -> None:
        self._catalog = catalog
        self._client = server.client()
        self._base = f"{PREFIX}:{Stage.TRANSFER.value}"

    async def take(self) -> str | None:
        """Do the next job at once: its row rests, and Redis forgets it."""
        found: Any = self._client.lpop(f"{self._base}:wait") or ""
        if not found:
            popped: Any = self._client.zpopmin(f"{self._base}:prioritized")
            if not popped:
                return None
            found = popped[0][0]
        self._client.delete(f"{self._base}:{found}")
        subject = found.removeprefix("transfer-").rsplit("-", 1)[0]
        async with self._catalog.write("work") as connection:
            await reminders.rest(connection, subject)
        return str(subject)

    def jobs(self) -> int:
        """Count all jobs in Redis, whatever their state."""
        return sum(1 for _ in self._client.scan_iter(f"{self._base}:transfer-*", count=10_000))


def relay_of(catalog: Catalog, queue: BullmqQueue, **more: Any) -> Relay:
    windows = dict.fromkeys(Stage, WINDOW)
    return Relay(catalog, queue, windows=windows, attempts=dict.fromkeys(Stage, 1), **more)


async def test_a_backlog_stays_in_the_catalog_and_a_single_file_passes_it(
    catalog: Catalog, queue: BullmqQueue, own_valkey: ValkeyServer, clock: ManualClock
) -> None:
    many, few = [await ensure_org(catalog, name) for name in ("many", "few")]
    now = clock.now()
    await fill(catalog, [reminder(many, f"m{n}", now - BACKLOG + n) for n in range(BACKLOG)])
    soon = [reminder(many, f"l{n}", now + 1_000 + n) for n in range(LATER)]
    await fill(catalog, soon)
    relay, desk = relay_of(catalog, queue), Desk(catalog, own_valkey)
    for _ in range(5):
        await relay.send_due()
    # Those that are due, and as many again of those that will be within a minute.
    assert desk.jobs() == 2 * WINDOW
    for number in range(30):
        assert await desk.take() == f"m{number}"
        await relay.send_due()
        assert desk.jobs() <= 2 * WINDOW
    await fill(catalog, [reminder(few, "f0", clock.now())])
    assert await desk.take() == "m30"
    await relay.send_due()
    # It was sent at the next turn and passes the jobs that were there before it.
    assert await desk.take() == "f0"


async def test_orgs_with_backlogs_take_turns(
    catalog: Catalog, queue: BullmqQueue, own_valkey: ValkeyServer, clock: ManualClock
) -> None:
    orgs = {name: await ensure_org(catalog, name) for name in ("a", "b", "c")}
    now = clock.now()
    for position, (name, org_id) in enumerate(orgs.items()):
        # The first has waited for longer than the last, and has many times as much.
        due_at, count = now - 1_000_000 * (3 - position), 1_000 // 10**position
        await fill(catalog, [reminder(org_id, f"{name}{n}", due_at + n) for n in range(count)])
    relay, desk = relay_of(catalog, queue), Desk(catalog, own_valkey)
    taken: Counter[str] = Counter()
    for _ in range(90):
        await relay.send_due()
        taken[str(await desk.take())[0]] += 1
    assert taken["c"] == 10
    assert abs(taken["a"] - taken["b"]) <= 2


async def test_who_has_more_than_their_share_in_the_backlog_holds_until_it_is_indexed(
    catalog: Catalog, queue: BullmqQueue, own_valkey: ValkeyServer, clock: ManualClock
) -> None:
    many, few = [await ensure_org(catalog, name) for name in ("many", "few")]
    now = clock.now()
    gates = [Gate(Reason.WAITING_FOR_INDEXING, orgs=frozenset({many}))]
    relay = relay_of(catalog, queue, gate=lambda: gates[-1])
    desk = Desk(catalog, own_valkey)
    await fill(
        catalog,
        [
            *(reminder(many, f"m{n}", now - 100) for n in range(3)),
            reminder(many, "m-edited", now, lane=reminders.LANE_FRESH),
            reminder(few, "f0", now),
        ],
    )
    await relay.send_due()
    assert {await desk.take() for _ in range(3)} == {"m-edited", "f0", None}
    gates.append(Gate(Reason.WAITING_FOR_DISK))
    assert await relay.send_due() == 0
    gates.append(OPEN)
    assert await relay.send_due() == 3


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_two_hundred_thousand_files_of_one_org_and_one_of_another(
    catalog: Catalog, queue: BullmqQueue, own_valkey: ValkeyServer, clock: ManualClock
) -> None:
    many, few = [await ensure_org(catalog, name) for name in ("many", "few")]
    now, count = clock.now(), 200_000
    with own_valkey.client() as client:
        before = client.info("memory")["used_memory"]
        await fill(catalog, [reminder(many, f"m{n}", now - count + n) for n in range(count)])
        relay, desk = relay_of(catalog, queue), Desk(catalog, own_valkey)
        delays, most = [], 0
        for turn in range(20):
            for _ in range(100):
                await relay.send_due()
                await desk.take()
                most = max(most, client.info("memory")["used_memory"])
            await fill(catalog, [reminder(few, f"f{turn}", clock.now())])
            begun = time.monotonic()
            while await desk.take() != f"f{turn}":
                await relay.send_due()
            delays.append(time.monotonic() - begun)
            assert desk.jobs() <= 2 * WINDOW
    print(  # noqa: T201 - the figures are the point
        f"{count:,} files wait; another org's file waited {max(delays):.3f} s at most; Redis "
        f"holds {desk.jobs()} jobs and grew by {(most - before) / 1024:.0f} KiB at most"
    )
    assert max(delays) < 10


async def test_what_the_relay_asks_does_not_grow_with_the_backlog(
    catalog: Catalog, clock: ManualClock
) -> None:
    """Steps of SQLite's machine, which no other process can disturb."""
    org_id = await ensure_org(catalog, "many")

    async def steps() -> int:
        from drivefeed.catalog import deliveries

        counted = 0

        def count() -> int:
            nonlocal counted
            counted += 1
            return 0

        async with catalog.read() as connection:
            raw = await connection.get_raw_connection()
            driver = raw.driver_connection
            assert driver is not None
            await driver.set_progress_handler(count, 1)
            await deliveries.stages_due(connection, now=clock.now(), horizon_ms=60_000)
            await deliveries.due(
                connection, Stage.TRANSFER, now=clock.now(), horizon_ms=0, limit=WINDOW
            )
            await driver.set_progress_handler(None, 0)
        return counted

    now = clock.now()
    await fill(catalog, [reminder(org_id, f"a{n}", now - n) for n in range(100)])
    small = await steps()
    await fill(catalog, [reminder(org_id, f"b{n}", now - n) for n in range(10_000)])
    async with catalog.write("sent") as connection:
        await connection.execute(text("ANALYZE"))
        assert await connection.scalar(select(func.count()).select_from(rows)) == 10_100
        await connection.execute(update(rows).where(rows.c.subject_id == "a1").values(sent_at=now))
    assert await steps() < small * 1.5
