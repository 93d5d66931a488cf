from collections.abc import AsyncIterator

import pytest

from drivefeed.catalog.accounts import declare_account
from drivefeed.catalog.budgets import FRESH_MS, budgets_told, forget_budgets, tell_budgets
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.engine import Catalog, open_catalog
from drivefeed.domain.budget import BudgetStanding, Lane
from drivefeed.services.budget_words import budget_dict, budget_sentence
from support.clock import CountedIds, ManualClock, no_checkpoint

STANDING = BudgetStanding(
    tenant_id="contoso.example",
    client_id="app",
    used_minute=812,
    per_minute=1000,
    used_day=12_340,
    per_day=960_000,
    closed_ms=90_000,
    throttled_ms=30_000,
    waiting={Lane.CHANGES: 1, Lane.BACKFILL: 12},
)


@pytest.fixture
async def catalog(catalog_url: str) -> AsyncIterator[Catalog]:
    catalog = await open_catalog(
        catalog_url, clock=ManualClock(), ids=CountedIds(), checkpoint=no_checkpoint
    )
    for org, names in (("acme", ("main", "second")), ("other", ("theirs",))):
        org_id = await ensure_org(catalog, org)
        for name in names:
            values = {"sign_in": "secret", "tenant_id": "Contoso.example", "client_id": "APP"}
            await declare_account(catalog, org_id=org_id, name=name, values=values)
    yield catalog
    await catalog.aclose()


async def test_each_org_sees_the_budget_that_its_accounts_spend_from(catalog: Catalog) -> None:
    assert await budgets_told(catalog) == []
    await tell_budgets(catalog, [STANDING])
    found = {
        org: await budgets_told(catalog, await ensure_org(catalog, org))
        for org in ("acme", "other")
    }
    assert [sorted(one.accounts.values()) for one in found["acme"]] == [["main", "second"]]
    assert [sorted(one.accounts.values()) for one in found["other"]] == [["theirs"]]
    assert len(await budgets_told(catalog)) == 2
    assert found["acme"][0].standing == STANDING
    assert budget_dict(found["acme"][0])["waiting"] == {
        "changes": 1, "retries": 0, "backfill": 12, "verify": 0,
    }  # fmt: skip


async def test_what_was_told_grows_old(catalog: Catalog) -> None:
    await tell_budgets(catalog, [STANDING])
    clock = catalog.clock
    assert isinstance(clock, ManualClock)
    clock.turn(ms=FRESH_MS // 2)
    (one, _) = await budgets_told(catalog)
    assert (one.standing.closed_ms, one.standing.used_minute) == (60_000, 812)
    clock.turn(ms=FRESH_MS)
    (one, _) = await budgets_told(catalog)
    assert (one.standing.closed_ms, one.standing.used_minute, one.standing.waiting) == (0, 0, {})
    assert one.standing.used_day == 12_340
    clock.turn(days=2)
    assert await budgets_told(catalog) == []
    await forget_budgets(catalog)
    clock.turn(days=-2)
    assert await budgets_told(catalog) == []


def test_it_is_told_in_words() -> None:
    assert budget_sentence(STANDING) == (
        "812 of 1,000 resource units in the last minute, 12,340 of 960,000 in 24 hours; requests "
        "that wait: changes 1, backfill 12. Microsoft asked to wait: 90 seconds more."
    )
