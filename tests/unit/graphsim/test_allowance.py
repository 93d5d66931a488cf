from __future__ import annotations

from email.utils import formatdate
from typing import TYPE_CHECKING

import httpx
import pytest

from graphsim.admin import admin_app
from graphsim.allowance import price
from unit.graphsim.kit import Desk, desk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def here() -> AsyncIterator[Desk]:
    async with desk() as made:
        made.app.allowance.per_minute = 10
        yield made


@pytest.mark.parametrize(
    ("op", "url", "units"),
    [
        ("item", "/items/x", 1),
        ("item", "/items/x?$expand=permissions", 5),
        ("children", "/root/children", 2),
        ("delta", "/root/delta", 2),
        ("delta", "/root/delta?token=x", 1),
        ("delta", "/items('x')/microsoft.graph.delta(token='x')", 1),
        ("content", "/items/x/content", 1),
        ("download", "/_download/x", 0),
        ("directory", "/sites/x/permissions", 5),
    ],
)
def test_prices(op: str, url: str, units: int) -> None:
    assert price(op, url) == units


async def test_headers_from_80_percent_and_a_refusal_after_100(here: Desk) -> None:
    answers = [await here.get("root/children") for _ in range(3)]
    assert all("ratelimit-limit" not in one.headers for one in answers)
    at_80 = await here.get("root/children")
    assert at_80.headers["ratelimit-limit"] == "10"
    assert at_80.headers["ratelimit-remaining"] == "2"
    here.clock.advance(20)
    assert (await here.get("root/children")).headers["ratelimit-reset"] == "40"
    refused = await here.get("root")
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "40"
    assert refused.json()["error"]["code"] == "activityLimitReached"
    here.clock.advance(41)
    assert (await here.get("root")).status_code == 200
    (account,) = here.app.allowance.accounts.values()
    assert (account.units, account.refused, account.minute.used) == (12, 1, 1)
    assert here.app.log.units(app=account.app) == 12


async def test_requests_during_a_penalty_make_it_longer_and_are_told_of(here: Desk) -> None:
    for _ in range(6):
        await here.get("root/children")
    assert here.app.log.during_penalty() == []
    early = await here.get("root")
    assert early.headers["retry-after"] == "65"
    here.clock.advance(62)
    assert (await here.get("root")).status_code == 429
    assert [entry.penalty_age for entry in here.app.log.during_penalty()] == [0, 62]
    assert len(here.app.log.during_penalty(grace=1)) == 1
    here.clock.advance(8.5)
    assert (await here.get("root")).status_code == 200
    assert len(here.app.log.during_penalty()) == 2


async def test_units_of_a_day(here: Desk) -> None:
    here.app.allowance.per_minute, here.app.allowance.per_day = None, 4
    here.app.allowance.scale = 0.5
    assert [(await here.get("root/children")).status_code for _ in range(2)] == [200, 429]
    here.clock.advance(86_401)
    assert (await here.get("root/children")).status_code == 200


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "30"}, 30),
        ({"Retry-After": "30", "RateLimit-Reset": "90"}, 90),
        ({"Retry-After": "DATE"}, 50),
        ({"Retry-After": "999999"}, 3600),
        ({"Retry-After": "abc"}, 0),
        ({"Retry-After": "-1"}, 0),
        ({}, 0),
    ],
)
async def test_a_fault_that_asks_to_wait_begins_a_penalty_too(
    here: Desk, headers: dict[str, str], wait: float
) -> None:
    date = formatdate(here.clock.now() + 50, usegmt=True)
    given = {name: value.replace("DATE", date) for name, value in headers.items()}
    here.fault("throttle", headers=given)
    assert (await here.get("root")).status_code == 429
    for seconds in (max(wait - 1, 0), 2):
        here.clock.advance(seconds)
        await here.get("root")
    assert len(here.app.log.during_penalty()) == (1 if wait else 0)


async def test_over_the_admin_port(here: Desk) -> None:
    transport = httpx.ASGITransport(admin_app(here.app))
    async with httpx.AsyncClient(transport=transport, base_url="http://admin") as admin:
        told = (await admin.patch("/allowance", json={"per_minute": 4, "scale": 1.0})).json()
        assert (told["per_minute"], told["per_day"]) == (4, None)
        assert (await admin.patch("/allowance", json={"per_hour": 4})).status_code == 400
        for _ in range(4):
            await here.get("root/children")
        verdict = (await admin.get("/assertions?max_in_flight=0&max_units=5")).json()
        assert not verdict["ok"]
        assert len(verdict["during_penalty"]) == 1
        assert len(verdict["over_max_in_flight"]) == 4
        assert (verdict["resource_units"], verdict["over_max_units"]) == (8, True)
        last = here.app.log.last
        verdict = (await admin.get(f"/assertions?since={last}&max_in_flight=9")).json()
        assert verdict["ok"]
        (account,) = (await admin.get("/allowance")).json()["accounts"]
        assert (account["units"], account["refused"]) == (8, 2)
