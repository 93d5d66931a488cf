import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.domain.budget import Remaining
from drivefeed.sources.graph.waits import LONGEST_WAIT, told_remaining, told_wait

NOON = 1_790_000_000_000
DATE = "Mon, 21 Sep 2026 14:13:20 GMT"
LATER = "Mon, 21 Sep 2026 14:14:20 GMT"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": LATER}, 60.0),
        ({"retry-after": LATER, "date": LATER}, None),
        ({"retry-after": "999999"}, LONGEST_WAIT),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "abc"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "²"}, None),
        ({"retry-after": "5", "ratelimit-reset": "31"}, 31.0),
        ({"retry-after": "50", "ratelimit-reset": "31"}, 50.0),
        ({"retry-after": "abc", "ratelimit-reset": "31"}, 31.0),
        ({"ratelimit-reset": "1790000012"}, 12.0),
    ],
)
def test_what_the_headers_ask_for(headers: dict[str, str], wait: float | None) -> None:
    assert told_wait(headers, now=NOON) == wait


def test_a_date_is_compared_with_the_servers_own_clock() -> None:
    skewed = NOON + 86_400_000
    assert told_wait({"retry-after": LATER, "date": DATE}, now=skewed) == 60.0


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_anything_gives_nothing_or_a_bounded_wait(retry: str, reset: str, date: str) -> None:
    headers = {"retry-after": retry, "ratelimit-reset": reset, "date": date}
    wait = told_wait(headers, now=NOON)
    assert wait is None or 0 < wait <= LONGEST_WAIT


@pytest.mark.parametrize(
    ("limit", "remaining", "reset", "told"),
    [
        ("1250", "250", "12", Remaining(1250, 250, 12_000)),
        ("1250, 1250;w=60", "0", "0.5", Remaining(1250, 0, 500)),
        ("1250;w=60", "3", "60", Remaining(1250, 3, 60_000)),
        ("", "250", "12", Remaining(0, 250, 12_000)),
        ("1250", "", "12", None),
        ("1250", "250", "", None),
        ("1250", "-1", "12", None),
        ("1250", "many", "12", None),
        ("1250", "250", "99999", None),
    ],
)
def test_what_is_left(limit: str, remaining: str, reset: str, told: Remaining | None) -> None:
    headers = {
        "ratelimit-limit": limit, "ratelimit-remaining": remaining, "ratelimit-reset": reset,
    }  # fmt: skip
    assert told_remaining(headers) == told
