"""Backups are whole or not there; a restore takes the place of the catalog at once."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from drivefeed.catalog import restoring
from drivefeed.catalog.copying import back_up, examine_copy, put_in_place, sqlite_path
from drivefeed.catalog.heartbeats import beat, take_lease
from drivefeed.catalog.tables import heartbeats, imports, leases, reminders
from drivefeed.domain.errors import NeedsAttention, NotFound, PartDown
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from pathlib import Path

    from support.clock import ManualClock

on_sqlite = pytest.mark.parametrize("catalog_url", ["sqlite"], indirect=True)
"""A Postgres is backed up by its own tools."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@on_sqlite
async def test_a_backup_is_one_moment_of_a_catalog_in_use(rig: Rig, path: Path) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    target = path.with_name("backup.db")
    async with rig.catalog.write() as connection:
        # Somebody is in the middle of a transaction.
        await connection.execute(update(imports).values(detail="not yet"))
        made = back_up(path, target)
    assert made == examine_copy(target)
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(one.name for one in path.parent.glob("backup*")) == ["backup.db"]
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute("SELECT detail FROM imports").fetchall() == [(None,)]
    with pytest.raises(NeedsAttention, match="is there already"):
        back_up(path, target)


def test_there_must_be_a_catalog_and_a_place_to_write(path: Path) -> None:
    with pytest.raises(NotFound):
        back_up(path, path.with_name("backup.db"))
    with pytest.raises(NeedsAttention, match="cannot be written"):
        back_up(path, path.parent / "nowhere" / "backup.db")
    assert not list(path.parent.iterdir())


@on_sqlite
async def test_what_is_no_backup_is_refused(rig: Rig, path: Path) -> None:
    target = path.with_name("backup.db")
    with pytest.raises(NotFound):
        examine_copy(target)
    target.write_text("Dear diary, " * 1000)
    with pytest.raises(NeedsAttention, match="no backup"):
        examine_copy(target)
    target.unlink()
    back_up(path, target)
    with closing(sqlite3.connect(target)) as copy, copy:
        copy.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(NeedsAttention, match="newer version"):
        examine_copy(target)
    del rig


@on_sqlite
async def test_what_was_there_stays_beside_and_its_log_cannot_ruin_the_restored_file(
    rig: Rig, path: Path
) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    target = path.with_name("backup.db")
    back_up(path, target)
    await rig.round([file("b", "docs")])
    with pytest.raises(PartDown, match="open"):
        put_in_place(target, path, epoch="e", now=7, suffix="before")
    await rig.catalog.aclose()
    beside = put_in_place(target, path, epoch="e", now=7, suffix="before")
    assert beside == path.with_name("catalog.db.before")

    def files_in(database: Path) -> int:
        with closing(sqlite3.connect(database)) as opened:
            (count,) = opened.execute("SELECT count(*) FROM documents").fetchone()
        return int(count)

    assert (files_in(beside), files_in(path)) == (2, 1)
    assert not [one.name for one in path.parent.iterdir() if "restoring" in one.name]


@on_sqlite
async def test_what_a_killed_process_wrote_last_is_restored_with_its_log(
    rig: Rig, path: Path, tmp_path: Path
) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs"), file("b", "docs")])
    raw = tmp_path / "raw"
    raw.mkdir()
    # As somebody copies a data folder whose process was killed: the file, and its log beside it.
    for name in ("catalog.db", "catalog.db-wal"):
        shutil.copyfile(path.with_name(name), raw / name)
    assert (raw / "catalog.db-wal").stat().st_size > 0
    restored = tmp_path / "restored.db"
    put_in_place(raw / "catalog.db", restored, epoch="e", now=7, suffix="before")
    with closing(sqlite3.connect(restored)) as opened:
        assert opened.execute("SELECT count(*) FROM documents").fetchone() == (2,)


def rows_and_a_hot_journal(database: Path, rows: int) -> bytes:
    """Fill a database, and return the log of a transaction in it that a kill would leave."""
    with closing(sqlite3.connect(database, isolation_level=None)) as made:
        made.execute("PRAGMA synchronous=OFF")
        made.execute("CREATE TABLE alembic_version (version_num TEXT)")
        made.execute("INSERT INTO alembic_version VALUES ('0001')")
        made.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT)")
        for number in range(rows):
            made.execute("INSERT INTO facts VALUES (?, ?)", (str(number), "x" * 2_000))
        made.execute("PRAGMA cache_size=1")
        made.execute("BEGIN IMMEDIATE")
        made.execute("UPDATE facts SET value = 'y'")
        log = database.with_name(database.name + "-journal").read_bytes()
        made.execute("ROLLBACK")
    return log


def test_the_log_of_a_killed_restore_does_not_ruin_the_next_one(tmp_path: Path) -> None:
    log = rows_and_a_hot_journal(tmp_path / "small.db", 50)
    assert len(log) > 20_000
    backup, catalog = tmp_path / "large.db", tmp_path / "catalog.db"
    rows_and_a_hot_journal(backup, 400)
    fresh = tmp_path / "catalog.db.restoring"
    fresh.with_name(fresh.name + "-journal").write_bytes(log)
    put_in_place(backup, catalog, epoch="e", now=7, suffix="before")
    assert examine_copy(catalog).size >= backup.stat().st_size
    with closing(sqlite3.connect(catalog)) as opened:
        (count,) = opened.execute("SELECT count(*) FROM facts").fetchone()
    assert count == 401
    assert not [one.name for one in tmp_path.iterdir() if "restoring" in one.name]


def test_the_log_of_a_killed_backup_does_not_ruin_the_next_one(tmp_path: Path) -> None:
    log = rows_and_a_hot_journal(tmp_path / "small.db", 50)
    catalog, target = tmp_path / "catalog.db", tmp_path / "backup.db"
    rows_and_a_hot_journal(catalog, 400)
    (tmp_path / "backup.db.partial").write_bytes(b"half")
    (tmp_path / "backup.db.partial-journal").write_bytes(log)
    assert back_up(catalog, target).size >= catalog.stat().st_size
    with closing(sqlite3.connect(target)) as opened:
        assert opened.execute("SELECT count(*) FROM facts").fetchone() == (400,)
    assert not [one.name for one in tmp_path.iterdir() if "partial" in one.name]


def test_a_damaged_catalog_can_be_replaced(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as made, made:
        made.execute("CREATE TABLE alembic_version (version_num TEXT)")
        made.execute("INSERT INTO alembic_version VALUES ('0001')")
        made.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT)")
    path.write_bytes(b"SQLite format 3\0" + b"torn" * 5000)
    log = path.with_name("catalog.db-wal")
    log.write_bytes(b"torn too")
    beside = put_in_place(other, path, epoch="e", now=7, suffix="before")
    assert beside is not None
    assert beside.read_bytes().endswith(b"torn")
    assert not log.exists()


async def test_nothing_of_the_time_after_the_backup_is_believed(
    rig: Rig, clock: ManualClock
) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    await beat(rig.catalog, "former", "up")
    assert await take_lease(rig.catalog, "notices", "former", for_ms=10**9)
    async with rig.catalog.write() as connection:
        await connection.execute(
            update(reminders).values(owner="former", busy_until=10**15, sent_at=1, remind_at=2)
        )
    clock.turn(ms=1)
    await restoring.mark_restored(rig.catalog, epoch="e")
    # Who begins after the restore is of this time: nobody may take it for dead.
    await beat(rig.catalog, "present", "up")
    assert await take_lease(rig.catalog, "index", "present", for_ms=10**9)
    one = await restoring.restored(rig.catalog)
    assert one is not None
    await restoring.begin_anew(rig.catalog, one)
    assert [row["owner"] for row in await rig.rows(heartbeats)] == ["present"]
    assert {row["name"] for row in await rig.rows(leases, leases.c.until > 0)} == {"index"}
    held = [(row["owner"], row["sent_at"], row["remind_at"]) for row in await rig.rows(reminders)]
    assert set(held) == {(None, None, None)}
    again = await restoring.restored(rig.catalog)
    assert again is not None
    assert again.queue_cleared


@pytest.mark.parametrize("state", [State.STORED, State.SUBMITTED, State.SETTLED])
async def test_a_version_whose_object_is_gone_comes_again_and_is_charged_once(
    rig: Rig, state: State
) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    one = await rig.import_of("a")
    if state is State.SETTLED:
        one = await rig.bring_live("a", pages=3)
    else:
        one = await rig.advance(one, Event.STORED, facts={"size": 10, "sha256": "x"})
        if state is State.SUBMITTED:
            one = await rig.advance(one, Event.SUBMITTING)
    assert one.state is state
    assert await restoring.import_again(rig.catalog, one.import_id, one.round, detail="gone")
    lost = await rig.import_of("a")
    assert (lost.state, lost.reason) == (State.WITHDRAWING, Reason.LOST)
    await rig.withdraw(lost)
    back = await rig.bring_live("a", pages=3)
    assert (back.import_id, back.round) == (one.import_id, 2)
    assert await rig.live() == {"a"}
    assert await rig.pages_used() == 3
    assert not await restoring.import_again(rig.catalog, one.import_id, 1, detail="late")


def test_only_sqlite_is_a_file(tmp_path: Path) -> None:
    assert sqlite_path(f"sqlite:///{tmp_path}/x.db") == tmp_path / "x.db"
    assert sqlite_path("postgresql+asyncpg://host/db") is None
