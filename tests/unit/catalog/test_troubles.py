"""The facts that notices are derived from, as the catalog keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from drivefeed.catalog.progress import Standing
from drivefeed.catalog.tables import accounts, connections, drives, imports
from drivefeed.catalog.troubles import gather_facts, waiting_since
from drivefeed.catalog.waiting import clear
from drivefeed.domain.lifecycle import Event
from drivefeed.domain.reasons import Reason
from drivefeed.services.connection_troubles import Rules, may_be_idle
from drivefeed.services.notices import Notices
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from support.clock import ManualClock

HOUR = 3_600_000


@pytest.fixture
async def listed(rig: Rig) -> Rig:
    """Three files; one of them is searchable."""
    await rig.enumerate([ROOT, folder("docs"), *(file(name, "docs") for name in ("a", "b", "c"))])
    await rig.bring_live("a")
    return rig


async def test_files_are_counted_by_why_they_stand(listed: Rig) -> None:
    one = await listed.import_of("b")
    async with listed.catalog.write() as connection:
        await connection.execute(
            update(imports)
            .where(imports.c.id == one.import_id)
            .values(attention=Reason.BACKEND_LATE)
        )
        await connection.execute(update(accounts).values(state="blocked", expires_at=7))
        await connection.execute(update(drives).values(attention="drive_gone", detail="404"))
        await connection.execute(update(connections).values(attention="mass_removal"))
    facts = await gather_facts(listed.catalog)
    (account,), (known,) = facts.accounts, facts.connections
    assert (account.state, account.expires_at, account.org) == ("blocked", 7, "org")
    assert known.counts == {
        (Standing.SEARCHABLE, "settled"): 1,
        (Standing.FAILED, "backend_late"): 1,
        (Standing.IN_PROGRESS, "discovered"): 1,
    }
    assert (known.attention, known.drive_attention) == ("mass_removal", "drive_gone")
    assert known.imported_at == listed.catalog.clock.now()
    assert facts.orgs[0].pages_used == 1


async def test_a_wait_is_counted_from_the_latest_admission(listed: Rig, clock: ManualClock) -> None:
    begun = clock.now()
    clock.turn(seconds=7 * 3600)
    (known,) = (await gather_facts(listed.catalog)).connections
    assert known.oldest_waiting_at == begun
    assert may_be_idle(known, Rules(), now=clock.now())
    since = await waiting_since(listed.catalog, [known.connection_id])
    assert since == {known.connection_id: begun}
    # Both that wait are refused, and then somebody tries one of them again.
    for name in ("b", "c"):
        one = await listed.import_of(name)
        await listed.advance(one, Event.REFUSED, reason=Reason.CORRUPT)
    assert await waiting_since(listed.catalog, [known.connection_id]) == {}
    one = await clear(listed.catalog, (await listed.import_of("b")).import_id)
    await listed.withdraw(one)
    assert await waiting_since(listed.catalog, [known.connection_id]) == {
        known.connection_id: clock.now()
    }


async def test_files_that_only_begin_after_a_long_wait_are_no_trouble(
    listed: Rig, catalog: Catalog, clock: ManualClock
) -> None:
    notices = Notices(catalog, [], owner="us")

    async def kinds() -> list[str]:
        async with catalog.write() as connection:
            await connection.execute(update(drives).values(last_round_at=clock.now()))
        return [one.kind for one in await notices.troubles()]

    clock.turn(seconds=8 * 3600)
    assert await kinds() == []
    clock.turn(seconds=29 * 60)
    assert await kinds() == []
    clock.turn(seconds=60)
    assert await kinds() == ["idle"]
    await listed.bring_live("b")
    assert await kinds() == []
