"""How often a drive is asked, and when nobody tells us of its changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.domain.pace import Pace
from drivefeed.domain.subscription import (
    SILENCE_MS,
    Subscription,
    SubscriptionState,
    is_secret,
    is_silent,
    retry_after_ms,
    secret_hash,
)

MINUTE = 60_000
PACE = Pace(slowest_ms=5 * MINUTE, told_ms=60 * MINUTE, looks_a_minute=500)


@pytest.mark.parametrize(
    ("quiet", "expected"),
    [
        (0, MINUTE),
        (20 * MINUTE, MINUTE),
        (60 * MINUTE, 3 * MINUTE),
        (600 * MINUTE, 5 * MINUTE),
        (None, 5 * MINUTE),
    ],
)
def test_a_busy_drive_is_asked_more_often_than_a_sleeping_one(
    quiet: int | None, expected: int
) -> None:
    assert PACE.between_looks(MINUTE, quiet_ms=quiet, is_told=False, drives=1) == expected


def test_a_drive_whose_changes_are_told_is_asked_seldom() -> None:
    assert PACE.between_looks(MINUTE, quiet_ms=0, is_told=True, drives=1) == 60 * MINUTE


@given(quiet=st.integers(0, 10**10), drives=st.integers(1, 20_000), is_told=st.booleans())
def test_all_drives_together_stay_within_the_budget(
    quiet: int, drives: int, *, is_told: bool
) -> None:
    wait = PACE.between_looks(MINUTE, quiet_ms=quiet, is_told=is_told, drives=drives)
    assert drives * MINUTE / wait <= PACE.looks_a_minute * 1.001
    assert wait >= MINUTE


def subscription(**more: object) -> Subscription:
    values: dict[str, object] = {
        "subscription_id": "s",
        "drive_id": "d",
        "account_id": "a",
        "drive_remote_id": "b!d",
        "state": SubscriptionState.LIVE,
        "secret_hash": secret_hash("word"),
        "remote_id": "r",
        "asked_at": 1_000,
        "expires_at": 3_000,
        "retry_at": None,
        "failures": 0,
        "wants_renewal": False,
        "detail": None,
    }
    return Subscription(**(values | more))  # type: ignore[arg-type]  # fields by name


def test_it_is_renewed_at_half_of_its_life_or_when_microsoft_asks() -> None:
    assert not subscription().is_due(1_999)
    assert subscription().is_due(2_000)
    assert subscription(wants_renewal=True).is_due(1_001)
    assert not subscription(retry_at=2_500).is_due(2_400), "it was refused, and waits"
    assert subscription().is_live(2_999)
    assert not subscription().is_live(3_000)
    assert not subscription(state=SubscriptionState.REFUSED).is_live(1_500)


def test_what_was_asked_and_never_answered_is_asked_again() -> None:
    lost = subscription(state=SubscriptionState.ASKED, remote_id=None, expires_at=None)
    assert lost.is_due(1_000)
    refused = subscription(state=SubscriptionState.REFUSED, retry_at=5_000)
    assert not refused.is_due(4_999)
    assert refused.is_due(5_000)


def test_silence_is_noticed_when_a_look_finds_what_nobody_told() -> None:
    late = 10 * SILENCE_MS
    assert is_silent(asked_at=0, told_at=None, changed_at=late, now=late + SILENCE_MS)
    assert not is_silent(asked_at=0, told_at=None, changed_at=late, now=late + 1), "may be late"
    assert not is_silent(asked_at=0, told_at=late - 1, changed_at=late, now=late + SILENCE_MS)
    assert not is_silent(asked_at=0, told_at=late + 5, changed_at=late, now=late + SILENCE_MS)
    assert not is_silent(asked_at=0, told_at=None, changed_at=None, now=late)


def test_only_its_own_word_is_the_word() -> None:
    kept = secret_hash("word")
    assert is_secret("word", kept)
    for shown in ("Word", "", None, 5, ["word"]):
        assert not is_secret(shown, kept)
    assert not is_secret("", ""), "what is not there has no word"


def test_refusals_make_it_wait_longer_and_never_more_than_hours() -> None:
    waits = [retry_after_ms(count) for count in (1, 2, 3, 9, 10_000)]
    assert waits[:3] == [60_000, 120_000, 240_000]
    assert waits[-1] == 6 * 3_600_000
    assert waits == sorted(waits)
