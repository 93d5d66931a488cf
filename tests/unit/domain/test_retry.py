from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drivefeed.domain.retry import backoff_ms, poll_interval_ms

_FRACTIONS = st.floats(0, 1, exclude_max=True)


@given(st.integers(-5, 10**9), _FRACTIONS)
def test_a_backoff_stays_within_its_bounds(attempt: int, fraction: float) -> None:
    assert 500 <= backoff_ms(attempt, fraction=fraction) <= 60_000


@given(st.integers(1, 40), _FRACTIONS)
def test_a_later_attempt_never_waits_less(attempt: int, fraction: float) -> None:
    assert backoff_ms(attempt, fraction=fraction) <= backoff_ms(attempt + 1, fraction=fraction)


def test_jitter_takes_up_to_half() -> None:
    assert backoff_ms(3, fraction=0) == 4_000
    assert backoff_ms(3, fraction=0.5) == 3_000
    assert backoff_ms(3, fraction=0.999) >= 2_000


@given(st.integers(-5, 10**9))
def test_polls_back_off_to_half_a_minute(polls: int) -> None:
    assert 500 <= poll_interval_ms(polls) <= 30_000


def test_the_first_poll_is_soon() -> None:
    assert [poll_interval_ms(polls) for polls in range(4)] == [500, 750, 1125, 1687]
