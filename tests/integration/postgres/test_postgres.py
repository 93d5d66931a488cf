"""What only a real Postgres can show: restarts, refusals, limits, clocks and migrations at once."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import asyncpg
import pytest
from sqlalchemy import func, insert, select, text

from drivefeed.catalog import heartbeats, postgres, reminders
from drivefeed.catalog.database_clock import DatabaseClock
from drivefeed.catalog.engine import PostgresLimits, migrate, newest_migration, open_catalog
from drivefeed.catalog.tables import facts
from drivefeed.domain.errors import NeedsAttention, Part, PartDown
from drivefeed.system import SystemIds, no_checkpoint
from support.clock import ManualClock
from support.postgres import PASSWORD
from support.valve import running_valve
from unit.catalog.rig import Rig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import Clock
    from support.postgres import PostgresServer


async def _open(
    url: str, *, clock: Clock | None = None, follows: bool = False, **limits: float
) -> Catalog:
    return await open_catalog(
        url,
        clock=clock or ManualClock(),
        ids=SystemIds(),
        checkpoint=no_checkpoint,
        limits=PostgresLimits(**limits),  # type: ignore[arg-type] - each by its name
        follows_database=follows,
    )


@pytest.fixture
async def catalog(postgres_url: str) -> AsyncIterator[Catalog]:
    opened = await _open(postgres_url)
    yield opened
    await opened.aclose()


async def _put(catalog: Catalog, name: str) -> None:
    async with catalog.write(beside=True) as connection:
        await connection.execute(insert(facts).values(name=name, value="x"))


async def _count(catalog: Catalog) -> int:
    async with catalog.read() as connection:
        return int(await connection.scalar(select(func.count()).select_from(facts)) or 0)


async def test_a_restart_is_survived(own_postgres: PostgresServer) -> None:
    """Open connections are cut; what is under way is told, what comes next works by itself."""
    catalog = await _open(own_postgres.new_database())
    await asyncio.gather(*(_put(catalog, f"before {number}") for number in range(4)))
    await asyncio.to_thread(own_postgres.stop)
    with pytest.raises(PartDown, match="does not answer"):
        await _put(catalog, "while it was down")
    with pytest.raises(PartDown, match="does not answer"):
        await _count(catalog)
    await asyncio.to_thread(own_postgres.start)
    assert await _count(catalog) == 4
    await asyncio.gather(*(_put(catalog, f"after {number}") for number in range(4)))
    assert await _count(catalog) == 8
    await catalog.aclose()


async def test_a_transaction_that_was_cut_is_told_as_a_part_that_is_down(
    own_postgres: PostgresServer,
) -> None:
    catalog = await _open(own_postgres.new_database())

    async def interrupted() -> None:
        async with catalog.write() as connection:
            await connection.execute(insert(facts).values(name="a", value="x"))
            await asyncio.to_thread(own_postgres.kill)
            await asyncio.to_thread(own_postgres.start)

    with pytest.raises(PartDown, match="was cut"):
        await interrupted()
    assert await _count(catalog) == 0
    await catalog.aclose()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ((PASSWORD, "another-word"), "refuses the password"),
        (("/test_", "/nothing_"), "has no database of the name"),
        (("127.0.0.1:", "127.0.0.2:"), "does not answer .Connection refused"),
        (("/test_", "/test_1?sslmode=perhaps&x="), "database_url cannot be used"),
    ],
)
async def test_refusals_are_sentences_without_the_password(
    postgres_url: str, change: tuple[str, str], words: str
) -> None:
    url = postgres_url.replace(*change)
    with pytest.raises((NeedsAttention, PartDown), match=words) as caught:
        await _open(url)
    everything = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert not [one for one in everything if PASSWORD in str(one) or "another-word" in repr(one)]


async def test_neither_password_nor_values_are_in_an_error(catalog: Catalog) -> None:
    await _put(catalog, "a-name-of-somebody")
    with pytest.raises(Exception, match="pk_facts") as caught:
        await _put(catalog, "a-name-of-somebody")
    assert "[parameters" not in str(caught.value)
    assert PASSWORD not in repr(catalog._engine.url)
    assert PASSWORD not in repr(catalog._engine)


async def test_limits_end_what_takes_too_long(postgres_url: str) -> None:
    catalog = await _open(postgres_url, statement_seconds=0.2, idle_seconds=0.2)

    async def sleeps() -> None:
        async with catalog.write(beside=True) as connection:
            await connection.execute(text("SELECT pg_sleep(20)"))

    async def stands_still() -> None:
        async with catalog.write(beside=True) as connection:
            await asyncio.sleep(0.6)
            await connection.execute(text("SELECT 1"))

    with pytest.raises(PartDown, match="statement_seconds"):
        await sleeps()
    with pytest.raises(PartDown, match=r"idle_seconds|was cut"):
        await stands_still()
    await _put(catalog, "and others go on")
    await catalog.aclose()


@pytest.mark.parametrize("when", ["in the middle", "at the commit"])
async def test_a_database_that_hangs_is_a_part_that_is_down(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Its own limits end nothing then, and the driver raises what every timeout does."""
    monkeypatch.setattr(postgres, "_GRACE_SECONDS", 0.2)
    async with running_valve(postgres_url) as valve:
        catalog = await _open(valve.url, statement_seconds=0.3)

        async def interrupted() -> None:
            async with catalog.write(beside=True) as connection:
                await connection.execute(insert(facts).values(name="a", value="x"))
                valve.shut()
                if when == "in the middle":
                    await connection.execute(select(func.count()).select_from(facts))

        words = "nothing was recorded" if when == "in the middle" else "is looked up when work goes"
        with pytest.raises(PartDown, match=f"did not answer within .*{words}") as caught:
            await interrupted()
        assert caught.value.part is Part.CATALOG
        valve.open()
        await _put(catalog, "b")
        assert await _count(catalog) in ({1} if when == "in the middle" else {1, 2})
        await catalog.aclose()


async def test_a_writer_that_waits_for_its_turn_is_limited_too(postgres_url: str) -> None:
    first, second = await _open(postgres_url), await _open(postgres_url, statement_seconds=0.2)
    async with first.write():
        with pytest.raises(PartDown):
            await _put(second, "x")
    await _put(second, "x")
    await first.aclose()
    await second.aclose()


async def test_connections_are_bounded(postgres_url: str) -> None:
    catalog = await _open(postgres_url, connections=2, connect_seconds=0.3)
    async with catalog.read(), catalog.read():
        with pytest.raises(PartDown, match=r"database\.connections"):
            await _count(catalog)
    assert await _count(catalog) == 0
    await catalog.aclose()


async def test_nothing_outlives_a_transaction(catalog: Catalog) -> None:
    """As behind a pgbouncer: every transaction may have another connection of the server."""
    await Rig.make(catalog)
    async with catalog.read() as connection:
        kept = await connection.scalar(text("SELECT count(*) FROM pg_prepared_statements"))
        limit = await connection.scalar(text("SHOW statement_timeout"))
    assert kept == 0
    assert limit == "30s"
    async with catalog._engine.connect() as connection:
        assert await connection.scalar(text("SHOW statement_timeout")) == "0"
        locks = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert await connection.scalar(locks) == 0


async def test_prepared_statements_are_kept_where_that_was_asked_for(postgres_url: str) -> None:
    catalog = await _open(postgres_url, prepared_statements=True)
    for _ in range(2):
        assert await _count(catalog) == 0
    async with catalog.read() as connection:
        kept = await connection.scalar(text("SELECT count(*) FROM pg_prepared_statements"))
    assert kept is not None
    assert kept > 0
    await catalog.aclose()


async def test_a_read_is_one_view_and_cannot_write(catalog: Catalog) -> None:
    async with catalog.read() as connection:
        before = await connection.scalar(select(func.count()).select_from(facts))
        await _put(catalog, "meanwhile")
        assert await connection.scalar(select(func.count()).select_from(facts)) == before
        with pytest.raises(Exception, match="read-only transaction"):
            await connection.execute(insert(facts).values(name="b", value="x"))


# Clocks


async def test_a_machine_whose_clock_is_wrong_takes_nobodys_work(postgres_url: str) -> None:
    """Two machines, a quarter of an hour apart; the database's clock is the one that counts."""
    right = await _open(postgres_url, clock=_Off(0), follows=True)
    wrong = await _open(postgres_url, clock=_Off(900_000), follows=True)
    rig = await Rig.make(right)
    await heartbeats.beat(right, "right", "worker")
    async with right.write() as connection:
        await reminders.put(
            connection,
            subject_id="x",
            org_id=rig.org_id,
            stage="transfer",
            due_at=right.clock.now(),
            payload={},
        )
        claim = await reminders.claim(
            connection,
            subject_id="x",
            number=1,
            owner="right",
            now=right.clock.now(),
            busy_ms=60_000,
        )
    assert claim is not None
    assert await heartbeats.take_lease(right, "lease", "right", for_ms=60_000) == 1
    await heartbeats.beat(wrong, "wrong", "worker")
    assert abs(wrong.clock.now() - right.clock.now()) < 60_000
    assert await heartbeats.reap(wrong, own="wrong") == 0
    assert await heartbeats.take_lease(wrong, "lease", "wrong", for_ms=60_000) is None
    assert sorted(await heartbeats.alive(wrong)) == ["right", "wrong"]
    for one in (right, wrong):
        await one.aclose()


class _Off:
    """A machine's clock that is wrong."""

    def __init__(self, ahead_ms: int) -> None:
        from drivefeed.system import SystemClock

        self._own = SystemClock()
        self._ahead_ms = ahead_ms

    def now(self) -> int:
        return self._own.now() + self._ahead_ms

    async def sleep(self, seconds: float) -> None:
        await self._own.sleep(seconds)


def test_a_slow_answer_does_not_make_the_time_jump() -> None:
    own = ManualClock(1_000)
    clock = DatabaseClock(own)
    clock.told(5_000, asked_at=1_000)
    assert clock.ahead_ms == 4_000
    asked = own.now()
    own.turn(ms=300)
    clock.told(5_100, asked_at=asked)
    assert clock.ahead_ms == 4_000, "the answer may have been on its way for 200 ms"
    asked = own.now()
    own.turn(ms=10)
    clock.told(9_000, asked_at=asked)
    assert 9_000 - 10 <= clock.now() <= 9_000 + 10


# Migrations


def test_migrations_of_processes_that_start_together_run_once(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.empty_database()
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(migrate, url) for _ in range(4)]:
            done.result()
    catalog_version = asyncio.run(_value(url, "SELECT version_num FROM alembic_version"))
    assert catalog_version == newest_migration()
    postgres_server.drop(url)


def test_a_catalog_of_a_newer_drivefeed_is_refused(postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    postgres_server.execute(
        "UPDATE alembic_version SET version_num = '0999'", database=url.rpartition("/")[2]
    )
    with pytest.raises(NeedsAttention, match="migrated to 0999 by a newer drivefeed"):
        migrate(url)
    postgres_server.drop(url)


async def _value(url: str, question: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()
