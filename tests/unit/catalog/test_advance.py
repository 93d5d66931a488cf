"""``advance`` and its neighbours: facts, charges, retries, doubts, many at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog import files, reminders, waiting
from drivefeed.catalog.control import set_paused
from drivefeed.catalog.sources import all_connections
from drivefeed.catalog.tables import import_events, imports
from drivefeed.catalog.tables import reminders as reminders_table
from drivefeed.catalog.usage_tables import ledger
from drivefeed.domain.access import CURED_WITH_DRIVE
from drivefeed.domain.errors import NotFound
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason
from unit.catalog.rig import ROOT, Rig, file, folder, gone

if TYPE_CHECKING:
    from drivefeed.catalog.reminders import Claim
    from drivefeed.domain.model import Import

_TREE = [ROOT, folder("docs"), folder("other")]
_STORED = {"size": 10, "sha256": "s", "integrity": "verified"}


@pytest.fixture
async def listed(rig: Rig) -> Rig:
    await rig.enumerate([*_TREE, file("a", "docs", "A")])
    return rig


async def _claim(rig: Rig, one: Import) -> Claim:
    number = (await rig.reminder(one.import_id))["number"]
    async with rig.catalog.write() as connection:
        claim = await reminders.claim(
            connection,
            subject_id=one.import_id,
            number=number,
            owner="me",
            now=rig.catalog.clock.now(),
            busy_ms=60_000,
        )
    assert claim is not None
    return claim


async def test_the_way_to_live_and_what_is_due_on_it(listed: Rig) -> None:
    one = await listed.import_of("a")
    due = [await listed.due(one.import_id)]
    for event, facts in (
        (Event.STORED, _STORED),
        (Event.SUBMITTING, {"deadline_at": 5}),
        (Event.ACCEPTED, {"backend_job": "j"}),
        (Event.SETTLED, {"pages": 3, "chunks": 2, "shown": True}),
    ):
        one = await listed.advance(one, event, facts=facts)
        due.append(await listed.due(one.import_id))
    assert [step and step[0] for step in due] == ["transfer", "submit", "submit", "poll", None]
    assert (one.state, one.pages, one.revision) == (State.SETTLED, 3, 5)
    assert await listed.live() == {"a"}
    assert await listed.pages_used() == 3
    events = await listed.rows(import_events)
    assert [row["event"] for row in events] == [
        "admitted",
        "stored",
        "submitting",
        "accepted",
        "settled",
    ]


async def test_facts_of_an_earlier_round_are_dropped_and_the_claim_is_let_go(listed: Rig) -> None:
    one = await listed.import_of("a")
    await listed.round(gone("a"))
    await listed.withdraw(await listed.import_of("a"))
    await listed.round([file("a", "docs", "A")])
    two = await listed.import_of("a")
    assert two.round == 2
    claim = await _claim(listed, two)
    after = await listed.advance(one, Event.STORED, facts=_STORED, claim=claim)
    assert (after.state, after.sha256) == (State.DISCOVERED, None)
    assert (await listed.reminder(one.import_id))["owner"] is None
    assert await listed.due(one.import_id) == ("transfer", 0)


async def test_a_race_that_was_lost_still_records_its_facts(listed: Rig) -> None:
    one = await listed.import_of("a")
    await listed.round([file("a", "docs", "B")])
    after = await listed.advance(one, Event.STORED, facts=_STORED)
    assert (after.state, after.sha256) == (State.WITHDRAWING, "s")
    assert await listed.due(one.import_id) == ("withdraw", 0)
    assert (await listed.import_of("a")).version_key == "quickxor:B"


async def test_unknown_facts_are_a_defect(listed: Rig) -> None:
    one = await listed.import_of("a")
    with pytest.raises(ValueError, match="state"):
        await listed.advance(one, Event.STORED, facts={"state": "settled"})
    assert (await listed.import_of("a")).state is State.DISCOVERED


async def test_an_unknown_import_says_so(rig: Rig) -> None:
    with pytest.raises(NotFound, match="nobody"):
        await files.fetch(rig.catalog, "nobody")


async def test_the_same_bytes_under_another_key_are_wanted_once(listed: Rig) -> None:
    a = await listed.bring_live("a", pages=3, sha256="s")
    await listed.round([file("a", "docs", None, etag="e2", quick_xor=None)])  # type: ignore[arg-type]
    other = await listed.import_of("a")
    assert other.version_key == "etag:e2"
    other = await listed.advance(
        other, Event.SAME_BYTES, facts=_STORED, reason=Reason.SAME_BYTES, same_as=a.import_id
    )
    document = await listed.document("a")
    assert document["wanted_import_id"] == a.import_id
    assert await listed.live() == {"a"}
    assert other.state is State.WITHDRAWING
    assert await listed.due(a.import_id) is None
    await listed.withdraw(other)
    await listed.round([file("a", "docs", None, etag="e2", quick_xor=None, name="n.txt")])  # type: ignore[arg-type]
    assert (await listed.document("a"))["wanted_import_id"] == a.import_id


async def test_a_version_is_charged_once_and_so_are_the_same_bytes(listed: Rig) -> None:
    await listed.bring_live("a", pages=3, sha256="s")
    one = await listed.import_of("a")
    await listed.advance(one, Event.SETTLED, facts={"pages": 9})
    await listed.round([file("a", "docs", "B")])
    await listed.bring_live("a", pages=5, sha256="s")
    assert await listed.pages_used() == 3
    assert [row["pages"] for row in await listed.rows(ledger)] == [3]
    await listed.round([file("a", "docs", "C")])
    await listed.bring_live("a", pages=7, sha256="t")
    assert await listed.pages_used() == 10


async def test_a_version_that_settles_unwanted_is_charged_and_never_live(listed: Rig) -> None:
    one = await listed.import_of("a")
    one = await listed.advance(one, Event.STORED, facts=_STORED)
    one = await listed.advance(one, Event.SUBMITTING)
    one = await listed.advance(one, Event.ACCEPTED, facts={"backend_job": "j"})
    await listed.round([file("a", "docs", "B")])
    one = await listed.advance(one, Event.SETTLED, facts={"pages": 3, "shown": True})
    assert await listed.live() == set()
    (row,) = await listed.rows(imports, imports.c.id == one.import_id)
    assert (row["state"], row["reason"]) == (State.WITHDRAWING, Reason.SUPERSEDED)
    assert await listed.pages_used() == 3


async def test_a_refusal_keeps_its_words_and_is_retried_without_a_trace(listed: Rig) -> None:
    one = await listed.import_of("a")
    one = await listed.advance(one, Event.STORED, facts=_STORED)
    await listed.advance(one, Event.REFUSED, reason=Reason.CORRUPT, detail="It is broken.")
    (row,) = await listed.rows(imports)
    assert (row["state"], row["reason"], row["detail"]) == ("rejected", "corrupt", "It is broken.")
    assert await listed.due(one.import_id) is None
    one = await waiting.clear(listed.catalog, one.import_id)
    assert await listed.due(one.import_id) == ("withdraw", 0), "its object goes first"
    await listed.advance(one, Event.REMOVED)
    one = await listed.import_of("a")
    assert (one.state, one.round) == (State.DISCOVERED, 2)
    assert await listed.due(one.import_id) == ("transfer", 0)


async def test_attention_rests_until_it_is_cleared(listed: Rig) -> None:
    one = await listed.import_of("a")
    claim = await _claim(listed, one)
    await waiting.ask_a_person(
        listed.catalog, claim, reason=Reason.ATTEMPTS_EXHAUSTED, detail="It failed."
    )
    assert await listed.due(one.import_id) is None
    assert (await listed.reminder(one.import_id))["owner"] is None
    asked = await listed.import_of("a")
    assert asked.attention is Reason.ATTEMPTS_EXHAUSTED
    assert (await listed.reminder(one.import_id))["number"] == claim.number
    await waiting.clear(listed.catalog, one.import_id)
    assert (await listed.import_of("a")).attention is None
    row = await listed.reminder(one.import_id)
    assert (row["stage"], row["lane"]) == ("transfer", reminders.LANE_FRESH)
    assert row["number"] > claim.number


async def test_a_retry_on_the_board_clears_attention_alone(listed: Rig) -> None:
    one = await listed.import_of("a")
    claim = await _claim(listed, one)
    await waiting.ask_a_person(
        listed.catalog, claim, reason=Reason.CRASHES_WORKER, detail="It died."
    )
    await _claim(listed, one)
    after = await waiting.unattended(listed.catalog, one.import_id)
    assert (after.attention, after.state) == (None, State.DISCOVERED)


async def test_a_late_backend_is_still_asked_and_a_retry_submits_again(listed: Rig) -> None:
    one = await listed.import_of("a")
    one = await listed.advance(one, Event.STORED, facts=_STORED)
    one = await listed.advance(one, Event.SUBMITTING, facts={"deadline_at": 5})
    one = await listed.advance(one, Event.ACCEPTED, facts={"backend_job": "j"})
    claim = await _claim(listed, one)
    later = listed.catalog.clock.now() + 300_000
    await waiting.ask_a_person(
        listed.catalog, claim, reason=Reason.BACKEND_LATE, detail="late", keep_due=later
    )
    assert await listed.due(one.import_id) == ("poll", 300_000)
    one = await waiting.clear(listed.catalog, one.import_id)
    assert (one.deadline_at, one.backend_job) == (None, None)
    assert await listed.due(one.import_id) == ("submit", 0)


async def test_a_change_of_mind_ends_the_waiting_of_the_old_version(listed: Rig) -> None:
    one = await listed.import_of("a")
    one = await listed.advance(one, Event.STORED, facts=_STORED)
    one = await listed.advance(one, Event.SUBMITTING)
    claim = await _claim(listed, one)
    await waiting.ask_a_person(
        listed.catalog, claim, reason=Reason.ATTEMPTS_EXHAUSTED, detail="It failed."
    )
    await listed.round([file("a", "docs", "B")])
    (row,) = await listed.rows(imports, imports.c.id == one.import_id)
    assert (row["state"], row["attention"]) == (State.SUBMITTED, None)
    assert await listed.due(one.import_id) == ("submit", 0)


async def test_outcomes_of_a_step_that_is_no_longer_due_change_nothing(listed: Rig) -> None:
    one = await listed.import_of("a")
    for number, outcome in enumerate(("ask", "again", "park")):
        claim = await _claim(listed, one)
        await listed.round([file("a", "docs", f"B{number}")])
        if outcome == "ask":
            await waiting.ask_a_person(
                listed.catalog, claim, reason=Reason.ATTEMPTS_EXHAUSTED, detail="It failed."
            )
        elif outcome == "again":
            await waiting.again(
                listed.catalog, claim, due_at=10**15, hold=Reason.THROTTLED, polled=True
            )
        else:
            await waiting.park(listed.catalog, claim, hold=Reason.PAUSED)
        (row,) = await listed.rows(imports, imports.c.id == one.import_id)
        assert (row["attention"], row["hold"], row["poll_count"]) == (None, None, 0)
        assert await listed.due(one.import_id) == ("withdraw", 0)
        assert (await listed.reminder(one.import_id))["owner"] is None
        one = await listed.import_of("a")


async def test_again_later_uses_no_attempt_and_says_why(listed: Rig) -> None:
    one = await listed.import_of("a")
    claim = await _claim(listed, one)
    due_at = listed.catalog.clock.now() + 5_000
    await waiting.again(
        listed.catalog, claim, due_at=due_at, hold=Reason.WAITING_FOR_STORE, detail="It is down."
    )
    row = await listed.reminder(one.import_id)
    assert (row["number"], row["starts"], row["owner"]) == (claim.number + 1, 0, None)
    assert await listed.due(one.import_id) == ("transfer", 5_000)
    (row,) = await listed.rows(imports)
    assert (row["hold"], row["detail"]) == (Reason.WAITING_FOR_STORE, "It is down.")


async def test_parked_nothing_is_due_until_the_connection_is_resumed(listed: Rig) -> None:
    (connection,) = await all_connections(listed.catalog)
    await set_paused(listed.catalog, connection, paused=True)
    one = await listed.import_of("a")
    await waiting.park(listed.catalog, await _claim(listed, one), hold=Reason.PAUSED)
    assert await listed.due(one.import_id) is None
    assert (await listed.import_of("a")).hold is Reason.PAUSED
    assert await set_paused(listed.catalog, connection, paused=False) == 1
    assert await listed.due(one.import_id) == ("transfer", 0)


async def test_a_resume_that_came_first_leaves_nothing_parked(listed: Rig) -> None:
    one = await listed.import_of("a")
    await waiting.park(listed.catalog, await _claim(listed, one), hold=Reason.PAUSED)
    assert (await listed.import_of("a")).hold is None
    assert await listed.due(one.import_id) == ("transfer", 0)


async def test_a_failed_attempt_is_told_and_lets_go(listed: Rig) -> None:
    one = await listed.import_of("a")
    claim = await _claim(listed, one)
    await waiting.note_attempt(listed.catalog, claim, error="It broke.", attempt=2)
    event = (await listed.rows(import_events))[-1]
    assert (event["event"], event["detail"]) == (
        "attempt_failed",
        "transfer, attempt 2: It broke.",
    )
    assert (await listed.reminder(one.import_id))["owner"] is None


async def test_many_advance_different_imports_and_the_same_one_at_once(rig: Rig) -> None:
    names = [f"f{number}" for number in range(20)]
    await rig.enumerate([*_TREE, *(file(name, "docs") for name in names)])
    await asyncio.gather(*(rig.bring_live(name, pages=2) for name in names))
    assert await rig.live() == set(names)
    assert await rig.pages_used() == 40
    await rig.round([file("f0", "docs", "2")])
    one = await rig.import_of("f0")
    await asyncio.gather(*(rig.advance(one, Event.STORED, facts=_STORED) for _ in range(20)))
    one = await rig.import_of("f0")
    assert (one.state, one.revision) == (State.STORED, 21)
    row = await rig.reminder(one.import_id)
    assert (row["stage"], row["number"]) == ("submit", 21)


async def test_a_cancelled_transaction_leaves_nothing_and_hinders_nobody(listed: Rig) -> None:
    reached = asyncio.Event()

    async def hold() -> None:
        async with listed.catalog.write() as connection:
            await connection.execute(imports.update().values(detail="never"))
            reached.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(hold())
    await reached.wait()
    waiting = asyncio.create_task(listed.bring_live("a"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await waiting
    (row,) = await listed.rows(imports)
    assert (row["state"], row["detail"]) == (State.SETTLED, None)
    assert len(await listed.rows(reminders_table, reminders_table.c.stage == "poll")) == 1


@pytest.mark.parametrize("why", [Reason.SECRET_EXPIRED, Reason.DRIVE_GONE])
async def test_files_go_on_when_their_drive_answers_again(listed: Rig, why: Reason) -> None:
    """Those that waited for a right of the same drive; nobody else, and each once."""
    await listed.enumerate([*_TREE, file("a", "docs", "A"), file("b", "docs", "B")])
    for name, reason in (("a", why), ("b", Reason.ATTEMPTS_EXHAUSTED)):
        one = await listed.import_of(name)
        claim = await _claim(listed, one)
        await waiting.ask_a_person(listed.catalog, claim, reason=reason, detail="")
        assert await listed.due(one.import_id) is None
    drive = (await listed.drive()).drive_id
    assert await waiting.clear_cured(listed.catalog, "another drive", CURED_WITH_DRIVE) == 0
    assert await waiting.clear_cured(listed.catalog, drive, CURED_WITH_DRIVE) == 1
    assert await waiting.clear_cured(listed.catalog, drive, CURED_WITH_DRIVE) == 0
    cured, other = await listed.import_of("a"), await listed.import_of("b")
    assert (cured.attention, other.attention) == (None, Reason.ATTEMPTS_EXHAUSTED)
    due = await listed.due(cured.import_id)
    assert due is not None
    assert due[0] == "transfer"
    assert cured.round == 1
