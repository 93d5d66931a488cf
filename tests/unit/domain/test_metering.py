"""The arithmetic of pages: nothing that was counted goes over a limit, whatever the order."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.domain.metering import (
    Balance,
    InLine,
    adjust,
    estimated_pages,
    hold,
    let_in,
    overage_of,
)

PAGES = st.integers(1, 120)
BALANCES = st.builds(
    Balance,
    limit=st.none() | st.integers(0, 200),
    used=st.integers(0, 250),
    held=st.integers(0, 250),
)


def test_the_estimate_goes_by_type_and_size() -> None:
    assert estimated_pages("txt", 3_000) == 1
    assert estimated_pages("txt", 3_001) == 2
    assert estimated_pages("pdf", 7_500_000) == 100
    assert estimated_pages("pdf", None) == estimated_pages("pdf", 0) == 1
    assert estimated_pages("whatever", 500_000) == 10


@given(BALANCES, PAGES, st.booleans())
def test_nobody_holds_more_than_is_free(balance: Balance, wanted: int, exact: bool) -> None:  # noqa: FBT001 - Hypothesis draws it
    granted = hold(balance, wanted, exact=exact)
    assert 0 <= granted <= wanted
    if balance.free is None:
        assert granted == wanted
        return
    assert granted <= balance.free
    if exact:
        assert granted in {0, wanted}
    else:
        assert granted == min(wanted, balance.free)


@given(BALANCES, PAGES, PAGES)
def test_an_adjustment_is_all_or_nothing(balance: Balance, held: int, counted: int) -> None:
    balance = replace(balance, held=balance.held + held)
    after = adjust(balance, held, counted)
    assert after in {0, counted}
    rest = replace(balance, held=balance.held - held)
    fits = balance.limit is None or rest.used + rest.held + counted <= balance.limit
    assert (after == counted) is fits


@given(st.integers(0, 300), st.lists(st.tuples(PAGES, PAGES, st.integers(0, 3)), max_size=30))
def test_counted_files_never_go_over_and_nothing_leaks(
    limit: int, files: list[tuple[int, int, int]]
) -> None:
    """All files hold their estimates first, so that they compete; then each is counted."""
    balance = Balance(limit)
    under_way: list[tuple[int, int, int]] = []
    for estimate, counted, fate in files:
        granted = hold(balance, estimate, exact=False)
        balance = replace(balance, held=balance.held + granted)
        if granted:
            under_way.append((granted, counted, fate))
    for granted, counted, fate in under_way:
        after = adjust(balance, granted, counted)
        balance = replace(balance, held=balance.held - granted + after)
        if after and fate:
            assert overage_of(balance, after, counted) == 0
            balance = replace(balance, held=balance.held - after, used=balance.used + counted)
        else:
            balance = replace(balance, held=balance.held - after)
        assert balance.used + balance.held <= limit
    assert balance.held == 0


@given(BALANCES, st.lists(st.tuples(PAGES, st.booleans()), max_size=20))
def test_the_line_moves_from_its_head_and_skips_who_does_not_fit(
    balance: Balance, wishes: list[tuple[int, bool]]
) -> None:
    line = [InLine(str(number), *wish) for number, wish in enumerate(wishes)]
    chosen = let_in(balance, line)
    assert [one for one, _ in chosen] == sorted((one for one, _ in chosen), key=line.index)
    if balance.free is None:
        assert [one for one, _ in chosen] == line
        return
    assert sum(granted for _, granted in chosen) <= balance.free
    after = replace(balance, held=balance.held + sum(granted for _, granted in chosen))
    left = [one for one in line if one not in [each for each, _ in chosen]]
    assert not any(hold(after, one.wanted, exact=one.exact) for one in left)


def test_overage_is_what_was_charged_and_not_held() -> None:
    assert overage_of(Balance(100), 30, 70) == 40
    assert overage_of(Balance(100), 70, 30) == 0
    assert overage_of(Balance(None), 30, 70) == 0
    assert Balance(100, used=120).over == 20
    assert Balance(100, used=120, held=3).free == 0


@pytest.mark.parametrize("wanted", [1, 70])
def test_an_estimate_takes_what_is_left(wanted: int) -> None:
    assert hold(Balance(100, used=99), wanted, exact=False) == 1
    assert hold(Balance(100, used=100), wanted, exact=False) == 0
