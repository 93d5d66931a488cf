"""What is worth telling, from facts that a test writes by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from drivefeed.catalog.parts_down import Down
from drivefeed.catalog.progress import Standing
from drivefeed.catalog.troubles import AccountFacts, ConnectionFacts, Facts, OrgFacts
from drivefeed.domain.errors import Part
from drivefeed.domain.explanations import explain
from drivefeed.domain.notices import Severity, Trouble, expiry_step, quota_step
from drivefeed.domain.periods import Period
from drivefeed.domain.reasons import Reason
from drivefeed.services.connection_troubles import Rules, connection_troubles, may_be_idle
from drivefeed.services.troubles import account_troubles, part_troubles, quota_troubles
from support.clock import NOON

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
RULES = Rules()
ACCOUNT = AccountFacts("a1", "o1", "acme", "main", "ok", None, "", None)


def connection(name: str = "Handbook", **changes: Any) -> ConnectionFacts:
    values: dict[str, Any] = {
        "connection_id": f"c-{name}",
        "org_id": "o1",
        "org": "acme",
        "name": name,
        "paused": False,
        "attention": None,
        "detail": "",
        "admitting": False,
        "created_at": NOON - 30 * DAY,
        "drive_id": "d1",
        "drive_name": "Documents",
        "drive_attention": None,
        "drive_detail": "",
        "drive_hold": None,
        "enumerating": False,
        "interval_ms": MINUTE,
        "last_round_at": NOON - MINUTE,
        "account_id": "a1",
    }
    return ConnectionFacts(**(values | changes))


def facts(*connections: ConnectionFacts, account: AccountFacts = ACCOUNT) -> Facts:
    return Facts([OrgFacts("o1", "acme", 80)], [account], list(connections))


def told(*connections: ConnectionFacts, waiting: dict[str, int] | None = None) -> list[Trouble]:
    return list(connection_troubles(facts(*connections), RULES, waiting or {}, now=NOON))


def test_a_connection_that_is_well_is_no_trouble() -> None:
    counts = {(Standing.SEARCHABLE, "settled"): 500, (Standing.FAILED, "corrupt"): 3}
    well = connection(counts=counts)
    assert told(well) == []
    assert list(account_troubles(facts(well), RULES, now=NOON)) == []


def test_files_that_wait_for_the_same_reason_are_one_trouble() -> None:
    counts = {
        (Standing.FAILED, "backend_late"): 37,
        (Standing.FAILED, "crashes_worker"): 1,
        (Standing.FAILED, "corrupt"): 2,
        (Standing.SEARCHABLE, "settled"): 1000,
    }
    first, second = told(connection(counts=counts))
    assert first.words.startswith("37 files wait for a person: backend_late. ")
    assert first.command == "drivefeed retry --reason backend_late"
    assert first.subject == "connection 'Handbook'"
    assert second.words.startswith("1 file waits for a person: crashes_worker. ")
    assert first.key != second.key


def test_the_brake_is_told_at_once_and_with_its_command() -> None:
    (one,) = told(connection("Shared docs", attention="mass_removal", detail="61 documents"))
    assert (one.kind, one.severity) == ("removals", Severity.URGENT)
    assert one.command == "drivefeed removals 'Shared docs'"
    assert "61 documents" in one.words


def test_a_drive_is_told_once_for_all_its_connections() -> None:
    gone = {"drive_attention": "drive_gone", "drive_detail": "It answered 404."}
    (one,) = told(connection("A", **gone), connection("B", **gone))
    assert "'A', 'B'" in one.words
    assert one.severity is Severity.URGENT


def test_a_sign_in_is_told_once_for_all_drives_of_the_account() -> None:
    lost = {"drive_attention": "needs_sign_in", "drive_detail": "AADSTS700082: expired."}
    connections = [connection(f"c{number}", drive_id=f"d{number}", **lost) for number in range(40)]
    assert told(*connections) == []
    (one,) = account_troubles(facts(*connections), RULES, now=NOON)
    assert "40 drives read through it wait" in one.words
    assert "AADSTS700082" in one.words
    assert one.reason == "needs_sign_in"


@pytest.mark.parametrize("reason", ["token_file_missing", "secret_expired", "consent_missing"])
def test_each_cause_of_a_refused_sign_in_is_told_of_the_account_by_its_own_words(
    reason: str,
) -> None:
    refused = {"drive_attention": reason, "drive_detail": "It was refused."}
    connections = [connection(**refused) for _ in range(2)]
    assert told(*connections) == []
    (one,) = account_troubles(facts(*connections), RULES, now=NOON)
    words = explain(Reason(reason))
    assert words.meaning in one.words
    assert one.remedy == words.remedy


def test_an_account_that_nobody_answered_is_no_trouble_of_its_own() -> None:
    unreached = replace(ACCOUNT, state="unreached", detail="It could not be reached.")
    assert list(account_troubles(facts(account=unreached), RULES, now=NOON)) == []


@pytest.mark.parametrize("state", ["needs_sign_in", "misconfigured", "blocked"])
def test_an_account_that_cannot_sign_in_is_urgent(state: str) -> None:
    account = replace(ACCOUNT, state=state, name="my main", detail="secret=abcdef12345 was wrong")
    (one,) = account_troubles(facts(account=account), RULES, now=NOON)
    assert one.severity is Severity.URGENT
    assert one.command == "drivefeed account test 'my main'"
    assert "abcdef12345" not in one.words
    several = facts(account=account)
    several.orgs.append(OrgFacts("o2", "other", 0))
    (one,) = account_troubles(several, RULES, now=NOON)
    assert one.command == "drivefeed account test 'my main' --org acme"


@pytest.mark.parametrize(
    ("left", "step", "severity"),
    [
        (31 * DAY, None, None),
        (30 * DAY, "30", Severity.NOTICE),
        (14 * DAY + 1, "30", Severity.NOTICE),
        (14 * DAY, "14", Severity.WARNING),
        (3 * DAY, "3", Severity.URGENT),
        (1, "3", Severity.URGENT),
        (0, "0", Severity.URGENT),
        (-9 * DAY, "0", Severity.URGENT),
    ],
)
def test_the_end_of_a_secret_is_told_ahead(
    left: int, step: str | None, severity: Severity | None
) -> None:
    account = replace(ACCOUNT, expires_at=NOON + left)
    found = list(account_troubles(facts(account=account), RULES, now=NOON))
    assert [one.step for one in found] == ([step] if step else [])
    assert [one.severity for one in found] == ([severity] if severity else [])
    if left == 14 * DAY:
        assert found[0].words == "Its secret, certificate or sign-in ends in 14 days."


def test_steps_are_the_nearest_that_is_reached() -> None:
    assert expiry_step(None, now=NOON) is None
    steps = {0: None, 79: None, 80: 80, 94: 80, 95: 95, 99: 95, 100: 100, 250: 100}
    assert {used: quota_step(used, 100) for used in steps} == steps
    assert quota_step(10**9, None) is None
    assert quota_step(0, 0) == 100


def test_quota_is_told_where_there_is_a_limit() -> None:
    acme = OrgFacts("o1", "acme", 95, 100, Period.MONTH)
    (one,) = quota_troubles([acme, OrgFacts("o2", "other", 10**6)])
    assert (one.step, one.severity, one.org) == ("95", Severity.WARNING, "acme")
    assert one.words == "95 of 100 pages are used in this month (95 % reached)."
    (full,) = quota_troubles([replace(acme, pages_used=100, period=Period.TOTAL)])
    assert (full.step, full.severity) == ("100", Severity.URGENT)
    assert full.words == "100 of 100 pages are used (100 % reached). New files wait."


def test_a_connection_without_a_completed_round_is_failing() -> None:
    silent = connection(last_round_at=NOON - 16 * MINUTE, drive_hold="waiting_for_source")
    (one,) = told(silent)
    assert one.kind == "failing"
    assert "for 16 minutes (Microsoft Graph does not answer)" in one.words
    assert told(replace(silent, last_round_at=NOON - 14 * MINUTE)) == []
    assert told(replace(silent, interval_ms=HOUR)) == []
    assert told(replace(silent, paused=True)) == []
    # A first listing takes as long as it takes, within a day.
    listing = replace(silent, enumerating=True, last_round_at=None, created_at=NOON - 5 * HOUR)
    assert told(listing) == []
    assert told(replace(listing, created_at=NOON - 25 * HOUR))


def test_a_share_of_failures_is_failing_and_a_few_are_not() -> None:
    many = {(Standing.FAILED, "corrupt"): 20, (Standing.SEARCHABLE, "settled"): 80}
    (one,) = told(connection(counts=many))
    assert "20 of 100 files failed (20 %)" in one.words
    assert one.command == "drivefeed imports --state failed"
    few = {(Standing.FAILED, "corrupt"): 9, (Standing.SEARCHABLE, "settled"): 1}
    assert told(connection(counts=few)) == []


def test_nothing_imported_counts_only_where_files_wait() -> None:
    waiting = {(Standing.IN_PROGRESS, "discovered"): 4, (Standing.SEARCHABLE, "settled"): 9}
    old = {"oldest_waiting_at": NOON - 7 * HOUR, "imported_at": NOON - 9 * HOUR}
    idle = connection(counts=waiting, **old)
    since = {idle.connection_id: NOON - 7 * HOUR}
    assert may_be_idle(idle, RULES, now=NOON)
    (one,) = told(idle, waiting=since)
    assert one.words == "None of 4 files that should be imported was, for 7 hours."
    # A folder in which nothing changed, and one where the last import is recent.
    assert not may_be_idle(connection(imported_at=NOON - 90 * DAY), RULES, now=NOON)
    recent = connection(counts=waiting, **(old | {"imported_at": NOON - HOUR}))
    assert not may_be_idle(recent, RULES, now=NOON)
    # Old imports that were admitted again a moment ago.
    assert told(idle, waiting={idle.connection_id: NOON - MINUTE}) == []
    assert told(replace(idle, paused=True), waiting=since) == []


def test_a_part_is_told_once_it_is_down_for_long() -> None:
    down = {
        Part.STORE.value: Down(NOON - 20 * MINUTE, "No answer.\nsig=SECRETSIG123"),
        Part.INDEX.value: Down(NOON - MINUTE, "No answer."),
        "backend 'acme'": Down(NOON - 30 * MINUTE, "The backend 'acme' was not reached."),
    }
    one, backend = part_troubles(down, RULES, now=NOON)
    assert backend.subject == "backend 'acme'"
    assert one.subject == "part 'store'"
    assert one.words.startswith("It does not answer for 20 minutes.")
    assert "SECRETSIG123" not in one.words
    assert "\n" not in one.words
    assert one.org_id is None


def test_names_cannot_break_out_of_their_line_or_command() -> None:
    (one,) = told(connection("it's; rm -rf /", attention="folder_gone"))
    assert one.command == """drivefeed resume 'it'"'"'s; rm -rf /'"""
    (one,) = told(connection("a\nb", connection_id="c7", attention="folder_gone"))
    assert "\n" not in one.subject
    assert one.command == "drivefeed resume c7"


def test_an_account_that_gets_nothing_for_an_hour_is_told_of() -> None:
    for minutes, told in ((59, 0), (60, 1)):
        throttled = replace(ACCOUNT, throttled_ms=minutes * 60_000)
        found = list(account_troubles(facts(account=throttled), RULES, now=NOON))
        assert len(found) == told
    assert found[0].reason == "throttled"
    assert found[0].severity is Severity.WARNING
    assert "60 minutes" in found[0].words
