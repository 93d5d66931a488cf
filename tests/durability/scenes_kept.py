"""Scenes of books, ages and restores: what a clerk, a calendar and a backend elsewhere do."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from drivefeed.bootstrap import Surroundings, open_parts
from drivefeed.catalog import heartbeats, sessions
from drivefeed.catalog.budgets import forget_budgets, tell_budgets
from drivefeed.catalog.calls import poll_now
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.index_jobs import ensure_sender
from drivefeed.catalog.quota_limits import Limit, set_limit, turn_due
from drivefeed.catalog.retention import last_pass
from drivefeed.domain.budget import BudgetStanding
from drivefeed.domain.periods import Period
from drivefeed.ports import Stage
from drivefeed.queue import BullmqQueue
from drivefeed.services.relay import Relay
from drivefeed.services.retention import Ages, Retention
from durability.memories import asked_of
from durability.scenes import catalog_here, settings_here

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

HOUR_MS = 3_600_000


def turn() -> None:
    """A day begins, and with it another period of a page limit."""
    asyncio.run(_turn())


async def _turn() -> None:
    async with catalog_here() as catalog:
        org_id = await ensure_org(catalog, "test")
        await set_limit(catalog, org_id, Limit(1_000, Period.DAY), actor="clerk")
        _write("UPDATE orgs SET quota_due_at = ? WHERE id = ?", catalog.clock.now() - 1, org_id)
        assert await turn_due(catalog) == 1


def ages() -> None:
    """What is old leaves the catalog, of every kind there is."""
    asyncio.run(_ages())


async def _ages() -> None:
    async with catalog_here() as catalog:
        org_id = await ensure_org(catalog, "test")
        await _leave_traces(catalog, org_id)
        everything = Ages(
            events=0, ends=0, index_jobs=0, notices=0, sessions=0, heartbeats=HOUR_MS // 2
        )
        # A day has gone by since it was done last.
        _write("DELETE FROM facts WHERE name = 'retention'")
        pruning = Retention(catalog, everything, owner="clerk")
        while await pruning.tick():
            pass
        assert await last_pass(catalog) is not None
        await _forget_a_budget(catalog)
    for table, where in (
        ("heartbeats", "owner = 'gone'"),
        ("notices", "over_at IS NOT NULL"),
        ("api_keys", "is_session"),
        ("imports", "state = 'withdrawn' AND detail IS NOT NULL"),
        ("index_jobs", "import_id IN (SELECT id FROM imports WHERE state = 'withdrawn')"),
        ("import_events", "event = 'removed'"),
    ):
        assert not _rows(f"SELECT 1 FROM {table} WHERE {where}"), table


async def _forget_a_budget(catalog: Catalog) -> None:
    """How a budget stands is told, and forgotten two days later."""
    gone = BudgetStanding("gone", "gone", 1, 1000, 1, 960_000)
    await tell_budgets(catalog, [gone])
    (name,) = [row[0] for row in _rows("SELECT name FROM facts WHERE value LIKE '%\"gone\"%'")]
    (value,) = [row[0] for row in _rows(f"SELECT value FROM facts WHERE name = '{name}'")]
    said = json.loads(value)
    said["at"] -= 48 * HOUR_MS
    _write("UPDATE facts SET value = ? WHERE name = ?", json.dumps(said), name)
    await forget_budgets(catalog)
    assert not _rows(f"SELECT 1 FROM facts WHERE name = '{name}'")


async def _leave_traces(catalog: Catalog, org_id: str) -> None:
    """Leave a process that is gone, a session that ended, a notice that is over, last words."""
    long_ago = catalog.clock.now() - HOUR_MS
    await heartbeats.beat(catalog, "gone", "up")
    _write("UPDATE heartbeats SET seen_at = ? WHERE owner = 'gone'", long_ago)
    link = await sessions.create_link(catalog, org_id=org_id, name=f"clerk {catalog.ids.new()}")
    await sessions.redeem_link(catalog, link.text)
    _write("UPDATE api_keys SET expires_at = ? WHERE is_session OR is_link", long_ago)
    _write(
        "INSERT INTO notices"
        " (id, org_id, dedupe_key, kind, severity, words, first_at, last_at, over_at)"
        " VALUES ('old', ?, 'old', 'made up', 'info', 'Made up.', ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        *(org_id, long_ago, long_ago, long_ago),
    )
    _write("UPDATE imports SET detail = 'Last words.' WHERE state = 'withdrawn'")


def lose() -> None:
    """Lose the points of one version and the object of another, past the watch over effects."""
    asyncio.run(_lose())


async def _lose() -> None:
    async with open_parts(settings_here(), Surroundings.real()) as parts:
        # The third was edited since, so nobody will miss what it had.
        known = _rows(
            "SELECT imports.id, round, imports.org_id || '/' || document_id || '/' || imports.id"
            " || '/' || round FROM imports JOIN documents ON documents.id = document_id"
            " JOIN items USING (drive_id, item_id)"
            " WHERE state = 'settled' AND items.name IN ('note 0.txt', 'note 2.txt')"
        )
        (lost, number, _), (_, _, key) = known
        index, store = type(parts.index.house.current.index), type(parts.store)
        remove: Any = index.remove
        delete: Any = store.delete
        await remove.__wrapped__(parts.index.house.current.index, import_id=lost, round_=number)
        await delete.__wrapped__(parts.store, key)


def called() -> None:
    """Another drivefeed is made known, and a backend calls about a job that is to be polled."""
    asyncio.run(_called())


async def _called() -> None:
    async with catalog_here() as catalog:
        await ensure_sender(catalog, "elsewhere")
        ((import_id, round_, backend),) = _rows(
            "SELECT id, round, backend FROM imports WHERE state = 'submitted'"
        )
        later = catalog.clock.now() + HOUR_MS
        _write("UPDATE reminders SET due_at = ? WHERE subject_id = ?", later, import_id)
        assert await poll_now(catalog, backend, f"{import_id}:{round_}")


def brought() -> None:
    """A delivery that was sent is gone from the queue, and past the time it should have ended."""
    asyncio.run(_brought())


async def _brought() -> None:
    async with catalog_here() as catalog:
        ((import_id,),) = _rows("SELECT id FROM imports WHERE state = 'submitted'")
        settings = settings_here()
        assert settings.redis_url is not None
        queue = BullmqQueue(
            settings.redis_url.get_secret_value(),
            prefix=settings.queue_prefix,
            name="clerk",
            ids=catalog.ids,
        )
        relay = Relay(
            catalog, queue, windows=dict.fromkeys(Stage, 1), attempts=dict.fromkeys(Stage, 1)
        )
        _write(
            "UPDATE reminders SET number = number + 1, sent_at = 1, remind_at = 1"
            " WHERE subject_id = ? AND due_at IS NOT NULL",
            import_id,
        )
        assert await relay.bring_back() == 1
        await queue.aclose()


def _rows(sql: str) -> list[tuple[Any, ...]]:
    return asked_of(settings_here(), sql)


def _write(sql: str, *values: Any) -> None:
    """Change the catalog itself: what made it so happened before anybody looked."""
    asked_of(settings_here(), sql, *values)
