"""Page limits in the catalog: who holds, who waits, who goes on, and what is charged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import DBAPIError

from drivefeed.catalog import reminders
from drivefeed.catalog.audit_log import entries_of
from drivefeed.catalog.control import set_paused
from drivefeed.catalog.ledger import BACKENDS, OURS, correct
from drivefeed.catalog.quota import Need
from drivefeed.catalog.quota_limits import Limit, set_limit, turn_due
from drivefeed.catalog.quota_line import hold_or_wait
from drivefeed.catalog.recount import recount
from drivefeed.catalog.sources import connections_in
from drivefeed.catalog.tables import import_events, imports, orgs
from drivefeed.catalog.usage import Usage, Wanted, statement, usage_of
from drivefeed.catalog.usage_tables import ledger, reservations
from drivefeed.catalog.waiting import ask_a_person, clear, park
from drivefeed.domain.errors import NeedsAttention, NotFound
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.periods import Period
from drivefeed.domain.reasons import Reason
from drivefeed.services.books import let_in_who_need_not_wait
from unit.catalog.rig import ROOT, Rig, file, folder, gone

if TYPE_CHECKING:
    from drivefeed.catalog.reminders import Claim
    from drivefeed.domain.model import Import
    from support.clock import ManualClock


@dataclass
class Town:
    """The rig with files in it, whose stages are played with pages."""

    rig: Rig

    async def limit(self, pages: int | None, **more: Any) -> None:
        await set_limit(self.rig.catalog, self.rig.org_id, Limit(pages, **more), actor="tester")

    async def usage(self) -> Usage:
        (one,) = await usage_of(self.rig.catalog, self.rig.org_id)
        return one

    async def claim(self, item_id: str) -> Claim:
        one = await self.rig.import_of(item_id)
        number = (await self.rig.reminder(one.import_id))["number"]
        async with self.rig.catalog.write("claim") as connection:
            claim = await reminders.claim(
                connection,
                subject_id=one.import_id,
                number=number,
                owner="tester",
                now=self.rig.catalog.clock.now(),
                busy_ms=1000,
            )
        assert claim is not None
        return claim

    async def begin(self, item_id: str, pages: int, *, counted: bool = False) -> bool:
        """Play the beginning of a transfer or a submit; whether it may go on."""
        claim, one = await self.claim(item_id), await self.rig.import_of(item_id)
        goes = await hold_or_wait(self.rig.catalog, claim, one, Need(pages, counted=counted))
        async with self.rig.catalog.write("release") as connection:
            await reminders.release(connection, claim)
        return goes

    async def store(self, item_id: str, pages: int | None = None, estimate: int = 1) -> Import:
        need = Need(estimate) if pages is None else Need(pages, counted=True)
        facts = {"size": 10, "sha256": f"bytes of {item_id}", "integrity": "verified"}
        one = await self.rig.import_of(item_id)
        await self.rig.advance(one, Event.STORED, facts=facts, need=need)
        return await self.rig.import_of(item_id)

    async def settle(self, item_id: str, pages: int, **more: Any) -> Import:
        one = await self.rig.advance(await self.rig.import_of(item_id), Event.SUBMITTING)
        one = await self.rig.advance(one, Event.ACCEPTED, facts={"backend_job": "job"})
        facts = {"pages": pages, "shown": True}
        return await self.rig.advance(one, Event.SETTLED, facts=facts, **more)

    async def held(self) -> dict[str, int]:
        """Pages held, by item."""
        documents = {row["id"]: row for row in await self.rig.rows(imports)}
        return {
            documents[row["import_id"]]["version_key"].removeprefix("quickxor:"): row["pages"]
            for row in await self.rig.rows(reservations, reservations.c.state == "held")
        }

    async def holds(self) -> None:
        """Assert that all books agree."""
        (one,) = await recount(self.rig.catalog, self.rig.org_id)
        assert one.drift == []


@pytest.fixture
async def town(rig: Rig) -> Town:
    """Files a to e, found one after the other; each version is called like its file."""
    files = [file(name, "docs", content=name) for name in "abcde"]
    await rig.enumerate([ROOT, folder("docs"), *files])
    async with rig.catalog.write() as connection:
        for number, name in enumerate("abcde"):
            await connection.execute(
                update(imports)
                .where(imports.c.version_key == f"quickxor:{name}")
                .values(created_at=imports.c.created_at + number)
            )
    return Town(rig)


async def test_two_files_of_70_pages_never_share_100(town: Town) -> None:
    await town.limit(100)
    assert await town.begin("a", 1)
    assert await town.begin("b", 1)
    assert (await town.store("a", 70)).hold is None
    second = await town.store("b", 70)
    assert (second.state, second.hold) == (State.STORED, Reason.QUOTA)
    assert await town.held() == {"a": 70}
    assert await town.rig.due(second.import_id) is None
    row = (await town.rig.rows(imports, imports.c.id == second.import_id))[0]
    assert row["detail"] == "it needs 70 pages, and 30 are free"
    await town.settle("a", 70)
    assert (await town.usage()).free == 30
    await town.limit(140)
    assert await town.held() == {"b": 70}
    assert await town.rig.due(second.import_id) == ("submit", 0)
    await town.settle("b", 70)
    usage = await town.usage()
    assert (usage.used, usage.held, usage.free, usage.over) == (140, 0, 0, 0)
    assert [row["overage"] for row in await town.rig.rows(ledger)] == [0, 0]
    await town.holds()


async def test_an_estimate_takes_what_is_left_and_the_next_waits_undownloaded(town: Town) -> None:
    await town.limit(10)
    assert await town.begin("a", 70)
    assert await town.held() == {"a": 10}
    assert not await town.begin("b", 5)
    waiting = await town.rig.import_of("b")
    assert (waiting.state, waiting.hold) == (State.DISCOVERED, Reason.QUOTA)
    assert (await town.usage()).files_waiting == 1
    # Its ten pages are not enough for it, and are enough for who waits.
    assert (await town.store("a", 70)).hold is Reason.QUOTA
    assert await town.held() == {"b": 5}
    assert await town.rig.due(waiting.import_id) == ("transfer", 0)
    await town.holds()


async def test_the_line_moves_in_order_and_skips_who_cannot_fit(town: Town) -> None:
    await town.limit(10)
    assert await town.begin("a", 10)
    for name in "dcb":
        assert not await town.begin(name, 4)
    # They go on in the order in which they were found, and the last takes what is left.
    await town.store("a", estimate=10)
    await town.rig.advance(await town.rig.import_of("a"), Event.REFUSED, reason=Reason.CORRUPT)
    assert await town.held() == {"b": 4, "c": 4, "d": 2}
    assert (await town.store("b", 9)).hold is Reason.QUOTA
    assert await town.held() == {"c": 4, "d": 2}
    await town.rig.round(gone("c"))
    assert await town.held() == {"d": 2}
    await town.limit(11)
    assert await town.held() == {"b": 9, "d": 2}
    await town.holds()


@pytest.mark.parametrize("end", ["refused", "removed", "superseded", "same_bytes", "person"])
async def test_whatever_ends_an_import_frees_its_pages(town: Town, end: str) -> None:
    await town.limit(10)
    assert await town.begin("a", 10)
    assert not await town.begin("b", 10)
    one = await town.rig.import_of("a")
    if end == "refused":
        await town.rig.advance(one, Event.REFUSED, reason=Reason.GONE_AT_SOURCE)
    elif end == "removed":
        await town.rig.round(gone("a"))
    elif end == "superseded":
        await town.rig.round([file("a", "docs", content="a2")])
    elif end == "same_bytes":
        await town.rig.advance(one, Event.SAME_BYTES, reason=Reason.SAME_BYTES)
    else:
        claim = await town.claim("a")
        await ask_a_person(town.rig.catalog, claim, reason=Reason.ATTEMPTS_EXHAUSTED, detail="")
    assert await town.held() == {"b": 10}
    assert (await town.rig.import_of("b")).hold is None
    await town.holds()


async def test_what_is_paused_holds_nothing_and_holds_again_afterwards(town: Town) -> None:
    await town.limit(10)
    await town.begin("a", 10)
    await town.store("a", 8)
    async with town.rig.catalog.read() as connection:
        (docs,) = await connections_in(connection, town.rig.drive_id)
    await set_paused(town.rig.catalog, docs, paused=True)
    await park(town.rig.catalog, await town.claim("a"), hold=Reason.PAUSED)
    assert await town.held() == {}
    await set_paused(town.rig.catalog, docs, paused=False)
    assert await town.begin("a", 1)
    assert await town.held() == {"a": 8}, "what was counted is not estimated again"


async def test_a_submitted_import_keeps_its_pages_whoever_is_asked(town: Town) -> None:
    await town.limit(10)
    await town.begin("a", 3)
    await town.store("a", estimate=3)
    await town.rig.advance(await town.rig.import_of("a"), Event.SUBMITTING)
    claim = await town.claim("a")
    await ask_a_person(town.rig.catalog, claim, reason=Reason.ATTEMPTS_EXHAUSTED, detail="")
    assert await town.held() == {"a": 3}
    await clear(town.rig.catalog, claim.subject_id)
    assert await town.held() == {"a": 3}
    await town.rig.advance(
        await town.rig.import_of("a"), Event.REFUSED, reason=Reason.BACKEND_REFUSED
    )
    assert await town.held() == {}
    await town.holds()


async def test_what_the_backend_counts_beyond_is_charged_and_marked(town: Town) -> None:
    await town.limit(10)
    await town.begin("a", 12)
    await town.store("a", estimate=12)
    await town.settle("a", 25)
    (entry,) = await town.rig.rows(ledger)
    assert (entry["pages"], entry["overage"]) == (25, 15)
    usage = await town.usage()
    assert (usage.used, usage.over, usage.free, usage.percent) == (25, 15, 0, 250)
    await town.holds()


async def test_less_than_was_held_lets_others_in(town: Town) -> None:
    await town.limit(10)
    await town.begin("a", 10)
    assert not await town.begin("b", 3)
    await town.store("a", estimate=10)
    await town.settle("a", 4)
    assert await town.held() == {"b": 3}
    assert (await town.usage()).free == 3


async def test_a_version_that_was_charged_holds_and_costs_nothing_again(town: Town) -> None:
    await town.limit(4)
    await town.begin("a", 4)
    await town.store("a", 4)
    await town.settle("a", 4)
    await town.rig.round([file("a", "docs", content="other")])
    assert not await town.begin("a", 1)
    await town.rig.round([file("a", "docs", content="a")])
    back = await town.rig.import_of("a")
    if back.state is State.SETTLED:
        back = await town.rig.withdraw(back)
    await town.rig.round(gone("b"))
    assert (await town.usage()).used == 4
    one = await town.rig.import_of("c")
    facts = {"size": 10, "sha256": "bytes of a", "integrity": "verified"}
    stored = await town.rig.advance(one, Event.STORED, facts=facts, need=Need(4, counted=True))
    # The same bytes in another document are another version.
    assert stored.hold is Reason.QUOTA
    await town.holds()


async def test_a_second_round_of_a_charged_version_needs_no_room(town: Town) -> None:
    await town.limit(4)
    await town.begin("a", 4)
    await town.store("a", 4)
    one = await town.settle("a", 4)
    await town.rig.round(gone("a"))
    await town.rig.withdraw(await town.rig.import_of("a"))
    await town.rig.round([file("a", "docs", content="a")])
    again = await town.rig.import_of("a")
    assert (again.import_id, again.round, again.state) == (one.import_id, 2, State.DISCOVERED)
    assert await town.begin("a", 4)
    assert (await town.store("a", 4)).hold is None
    await town.settle("a", 4)
    assert (await town.usage()).used == 4
    assert len(await town.rig.rows(ledger)) == 1
    await town.holds()


async def test_without_a_limit_nothing_is_held(town: Town) -> None:
    assert await town.begin("a", 10**6)
    await town.store("a", 10**6)
    await town.settle("a", 10**6)
    assert await town.rig.rows(reservations) == []
    usage = await town.usage()
    assert (usage.limit, usage.free, usage.percent, usage.total) == (None, None, None, 10**6)
    await town.limit(10**6)
    assert not await town.begin("b", 1)
    await town.limit(None)
    assert (await town.rig.import_of("b")).hold is None
    await town.holds()


async def test_a_new_period_counts_anew_and_lets_in(town: Town, clock: ManualClock) -> None:
    await town.limit(10, period=Period.DAY, zone="Europe/Berlin")
    await town.begin("a", 10)
    await town.store("a", 10)
    await town.settle("a", 10)
    assert not await town.begin("b", 7)
    resets_at = (await town.usage()).resets_at
    assert resets_at is not None
    clock.turn(ms=resets_at - clock.now() - 1)
    assert await turn_due(town.rig.catalog) == 0
    clock.turn(ms=1)
    assert await turn_due(town.rig.catalog) == 1
    assert await town.held() == {"b": 7}
    usage = await town.usage()
    assert (usage.used, usage.since, usage.total) == (0, resets_at, 10)
    assert usage.resets_at == resets_at + 24 * 3600 * 1000
    assert await turn_due(town.rig.catalog) == 0
    await town.holds()


async def test_what_was_charged_between_the_hour_and_the_turn_counts_in_the_new_period(
    town: Town, clock: ManualClock
) -> None:
    await town.limit(10, period=Period.MONTH)
    await town.begin("a", 6)
    await town.store("a", 6)
    clock.turn(ms=((await town.usage()).resets_at or 0) - clock.now() + 500)
    await town.settle("a", 6)
    await turn_due(town.rig.catalog)
    assert (await town.usage()).used == 6
    await town.holds()


async def test_a_limit_counts_what_was_charged_in_its_period_before_it_was_set(
    town: Town, clock: ManualClock
) -> None:
    await town.rig.bring_live("a", pages=5)
    clock.turn(days=40)
    await town.rig.bring_live("b", pages=3)
    await town.limit(10, period=Period.MONTH)
    assert (await town.usage()).used == 3
    await town.limit(10)
    assert (await town.usage()).used == 8
    told = await entries_of(town.rig.catalog, town.rig.org_id)
    assert [one.action for one in told][-2:] == ["usage.limited", "usage.limited"]
    assert told[-1].after == {"pages": 10, "period": "total", "zone": "UTC"}


async def test_a_long_line_is_let_in_by_and_by(
    town: Town, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drivefeed.catalog.quota_line.MOST_AT_ONCE", 2)
    await town.limit(0)
    for name in "abcde":
        assert not await town.begin(name, 1)
    await town.limit(100)
    assert len(await town.held()) == 2
    turns = 0
    while await turn_due(town.rig.catalog):
        turns += 1
        clock.turn(ms=1)
        assert turns < 5
    assert len(await town.held()) == 5


async def test_a_correction_is_an_entry_of_its_own(town: Town) -> None:
    await town.limit(10)
    await town.begin("a", 9)
    await town.store("a", 9)
    await town.settle("a", 9)
    assert not await town.begin("b", 4, counted=True)
    (charge,) = await town.rig.rows(ledger)
    catalog, org_id = town.rig.catalog, town.rig.org_id
    number = await correct(
        catalog, org_id, -3, reason="three blank pages", actor="kim", corrects=charge["id"]
    )
    usage = await town.usage()
    assert (usage.used, usage.total, usage.held) == (6, 6, 4)
    entries = [one async for one in statement(catalog, Wanted(org_id))]
    assert [(one.kind, one.pages, one.document) for one in entries] == [
        ("charge", 9, "a.txt"),
        ("correction", -3, "a.txt"),
    ]
    assert (entries[1].number, entries[1].actor, entries[1].corrects) == (
        number,
        "kim",
        charge["id"],
    )
    (audited,) = [
        one for one in await entries_of(catalog, org_id) if one.action == "usage.corrected"
    ]
    assert audited.after["reason"] == "three blank pages"
    with pytest.raises(NotFound, match="no charge number 99"):
        await correct(catalog, org_id, 1, reason="x", actor="kim", corrects=99)
    with pytest.raises(NeedsAttention, match="needs a reason"):
        await correct(catalog, org_id, 1, reason=" ", actor="kim")
    await town.holds()


async def test_a_statement_is_by_connection_document_and_time(
    town: Town, clock: ManualClock
) -> None:
    rig = town.rig
    await rig.bring_live("a", pages=5)
    first = clock.now()
    clock.turn(days=1)
    await rig.bring_live("b", pages=3)

    async def pages(**wanted: Any) -> list[int]:
        return [one.pages async for one in statement(rig.catalog, Wanted(rig.org_id, **wanted))]

    assert await pages() == [5, 3]
    assert await pages(begin=first + 1) == [3]
    assert await pages(end=first + 1) == [5]
    assert await pages(document_id=(await rig.document("b"))["id"]) == [3]
    assert await pages(connection_id=rig.connections["docs"]) == [5, 3]
    assert await pages(connection_id="other") == []


async def test_pages_are_held_by_one_transaction_and_nothing_is_read_before_it(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    await town.limit(100)
    claim, one = await town.claim("a"), await town.rig.import_of("a")

    def read() -> Any:
        raise AssertionError("the limit was looked up once more")

    with monkeypatch.context() as patch:
        patch.setattr(town.rig.catalog, "read", read)
        assert await hold_or_wait(town.rig.catalog, claim, one, Need(70))
    assert await town.held() == {"a": 70}


async def test_who_waits_for_pages_that_a_backend_counts_by_now_goes_on(town: Town) -> None:
    await town.limit(0)
    assert not await town.begin("a", 1)
    waits = await town.rig.import_of("a")
    assert await let_in_who_need_not_wait(town.rig.catalog, lambda _: OURS) == 0
    assert (await town.rig.import_of("a")).hold is Reason.QUOTA
    assert await let_in_who_need_not_wait(town.rig.catalog, lambda _: BACKENDS) == 1
    assert (await town.rig.import_of("a")).hold is None
    assert await town.rig.due(waits.import_id) == ("transfer", 0)


async def test_a_copy_of_a_backends_books_is_not_corrected_here(town: Town) -> None:
    await town.store("a")
    await town.settle("a", 50, usage_owner=BACKENDS)
    (entry,) = [one async for one in statement(town.rig.catalog, Wanted(town.rig.org_id))]
    with pytest.raises(NeedsAttention, match="Correct it there"):
        await correct(
            town.rig.catalog,
            town.rig.org_id,
            -3,
            reason="blank pages",
            actor="tester",
            corrects=entry.number,
        )
    assert (await town.usage()).total == 0


async def test_what_a_backend_counts_itself_is_copied_and_not_counted(town: Town) -> None:
    await town.limit(10)
    await town.rig.advance(
        await town.rig.import_of("a"), Event.STORED, facts={"size": 1, "sha256": "x"}
    )
    await town.settle("a", 50, usage_owner="backend")
    usage = await town.usage()
    assert (usage.used, usage.total, usage.copied) == (0, 0, {"embedded": 50})
    (entry,) = [one async for one in statement(town.rig.catalog, Wanted(town.rig.org_id))]
    assert (entry.pages, entry.overage, entry.usage_owner, entry.counts) == (
        50,
        0,
        "backend",
        False,
    )
    await town.holds()


@pytest.mark.parametrize("change", [update(ledger).values(pages=0), delete(ledger)])
async def test_the_database_refuses_to_change_the_ledger(town: Town, change: Any) -> None:
    await town.rig.bring_live("a", pages=5)
    with pytest.raises(DBAPIError, match="only appended to"):
        async with town.rig.catalog.write() as connection:
            await connection.execute(change)
    assert [row["pages"] for row in await town.rig.rows(ledger)] == [5]


async def test_a_recount_names_what_does_not_agree(town: Town) -> None:
    await town.limit(10)
    await town.begin("a", 2)
    await town.store("a", 2)
    await town.settle("a", 2)
    await town.begin("b", 3)
    await town.holds()
    async with town.rig.catalog.write() as connection:
        await connection.execute(update(orgs).values(pages_used=7, pages_held=1))
        await connection.execute(
            update(import_events).where(import_events.c.event == "settled").values(pages=4)
        )
        await connection.execute(
            update(imports).where(imports.c.version_key == "quickxor:b").values(state="rejected")
        )
    (one,) = await recount(town.rig.catalog)
    assert not one.holds
    words = " ".join(one.drift)
    for piece in (
        "Pages used: the counter says 7, added up they are 2.",
        "Pages held: the counter says 1, added up they are 3.",
        "is rejected and at rest, and still holds 3 pages",
        "charges 2 pages, and import",
    ):
        assert piece in words


async def test_no_such_zone_and_no_negative_limit(town: Town) -> None:
    with pytest.raises(NeedsAttention, match="no time zone 'Mars/Base'"):
        await town.limit(1, zone="Mars/Base")
    with pytest.raises(NeedsAttention, match="0 or more"):
        await town.limit(-1)
