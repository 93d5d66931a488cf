from collections.abc import AsyncIterator

import pytest
from prometheus_client import REGISTRY

from drivefeed.catalog.accounts import declare_account
from drivefeed.catalog.budgets import budgets_told
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.engine import Catalog, open_catalog
from drivefeed.domain.budget import Budget, Lane
from drivefeed.services.budgets import BudgetBoard
from drivefeed.sources.graph import ClientSecret, Gates, GraphAccount
from support.clock import CountedIds, ManualClock, no_checkpoint

ACCOUNT = GraphAccount("a", "main", "Tenant", "App", ClientSecret("s"))


@pytest.fixture
async def catalog(catalog_url: str) -> AsyncIterator[Catalog]:
    catalog = await open_catalog(
        catalog_url, clock=ManualClock(), ids=CountedIds(), checkpoint=no_checkpoint
    )
    values = {"sign_in": "secret", "tenant_id": "Tenant", "client_id": "App"}
    org_id = await ensure_org(catalog, "acme")
    await declare_account(catalog, org_id=org_id, name="main", values=values)
    yield catalog
    await catalog.aclose()


def metric(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"drivefeed_graph_{name}", {"app": "tenant/app"} | labels)


async def test_one_process_tells_the_catalog_and_all_have_metrics(catalog: Catalog) -> None:
    budget = Budget(1000, share=0.5)
    gates = Gates(catalog.clock, catalog.ids, budget=lambda _: budget)
    await gates.of(ACCOUNT).enter(5, Lane.CHANGES)
    await gates.of(ACCOUNT).close(30)
    await BudgetBoard(catalog, gates, {}, tells=False).tick()
    assert await budgets_told(catalog) == []
    assert metric("resource_units", window="minute", kind="used") == 5
    assert metric("resource_units", window="minute", kind="budget") == 500
    assert metric("closed_seconds") == 30
    assert metric("requests_waiting", lane="backfill") == 0
    await BudgetBoard(catalog, gates, {"a": ACCOUNT}, tells=True).tick()
    (told,) = await budgets_told(catalog)
    assert (told.standing.used_minute, told.standing.closed_ms) == (5, 30_000)


async def test_accounts_that_another_process_reads_through_are_told_of_too(
    catalog: Catalog,
) -> None:
    board = BudgetBoard(catalog, Gates(catalog.clock, catalog.ids), {"a": ACCOUNT}, tells=True)
    await board.tick()
    (told,) = await budgets_told(catalog)
    assert list(told.accounts.values()) == ["main"]
    assert told.standing.per_day == 960_000


async def test_what_did_not_change_is_not_written_again(catalog: Catalog) -> None:
    gates = Gates(catalog.clock, catalog.ids)
    board = BudgetBoard(catalog, gates, {"a": ACCOUNT}, tells=True)
    await board.tick()
    clock = catalog.clock
    assert isinstance(clock, ManualClock)
    clock.turn(seconds=30)
    async with catalog.write("test") as connection:
        from sqlalchemy import delete

        from drivefeed.catalog.tables import facts

        await connection.execute(delete(facts).where(facts.c.name > "budget:"))
    await board.tick()
    assert await budgets_told(catalog) == []
    await gates.of(ACCOUNT).enter(1, Lane.CHANGES)
    await board.tick()
    assert len(await budgets_told(catalog)) == 1
