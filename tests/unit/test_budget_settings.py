import pytest

from drivefeed.domain.budget import Budget
from drivefeed.domain.errors import NeedsAttention
from drivefeed.settings import load_settings


@pytest.mark.parametrize(
    ("licences", "minute", "day"),
    [
        (0, 1_250, 1_200_000),
        (1_000, 1_250, 1_200_000),
        (1_001, 2_500, 2_400_000),
        (15_000, 3_750, 3_600_000),
        (50_000, 5_000, 4_800_000),
        (50_001, 6_250, 6_000_000),
    ],
)
def test_limits_follow_from_the_licences_of_a_tenant(licences: int, minute: int, day: int) -> None:
    settings = load_settings(tenants={"Contoso.example": {"licences": licences}}, ru_share=0.5)
    budget = settings.budget_of("contoso.EXAMPLE")
    assert budget == Budget(minute, day, 0.5)
    assert (budget.our_minute, budget.our_day) == (minute // 2, day // 2)


def test_what_is_known_better_wins_and_a_day_fits_its_minute() -> None:
    settings = load_settings(
        ru_per_minute=2_000,
        tenants={"a": {"licences": 9_000, "ru_per_minute": 100}, "b": {"ru_per_day": 7}},
    )
    assert settings.budget_of("a").our_day == 96_000 * 0.8
    assert settings.budget_of("b") == Budget(2_000, 7, 0.8)
    assert settings.budget_of("c") == Budget(2_000, 0, 0.8)
    assert load_settings(ru_per_day=50).budget_of("c").our_day == 40


def test_what_is_asked_for_takes_minutes_and_then_whole_days() -> None:
    one = Budget(100, 1_000, 0.5)
    assert one.minutes_for(0) == 0
    assert one.minutes_for(500) == 10, "all of a day's units in ten minutes"
    assert one.minutes_for(501) == 1_440
    assert one.minutes_for(1_001) == 2 * 1_440
    assert Budget(100, 0, 0.5).minutes_for(1_000) == 20


def test_no_minute_exceeds_what_microsoft_grants() -> None:
    for share in (0.01, 0.5, 0.8, 0.99, 1.0):
        for minute in (60, 1_250, 6_250, 125_000):
            one = Budget(minute, share=share)
            assert one.burst + one.rate * 60_000 <= minute + 1e-6
            assert one.rate * 60_000 >= 0.9 * min(one.our_minute, minute - 5)


def test_a_company_that_would_break_the_header_is_refused() -> None:
    for name in ("a|b", "naïve", "two\nlines", " space first"):
        with pytest.raises(NeedsAttention):
            load_settings(outbound={"company": name})
    assert load_settings(outbound={"company": "Contoso Ltd"}).outbound.company == "Contoso Ltd"
