from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unit.graphsim.kit import BASE, Desk, desk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def here() -> AsyncIterator[Desk]:
    async with desk() as made:
        yield made


async def _batch(here: Desk, *requests: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    numbered = [{"id": str(n), "method": "GET"} | one for n, one in enumerate(requests)]
    answer = await here.client.post(f"{BASE}/v1.0/$batch", json={"requests": numbered})
    body = answer.json()
    return answer.status_code, {one["id"]: one for one in body.get("responses", [])} or body


async def test_members_are_answered_and_charged_by_themselves(here: Desk) -> None:
    file = here.drive.create_file("a.txt", b"one")
    here.app.allowance.per_minute = 4
    own = f"/drives/{here.drive.id}"
    here.fault("throttle", op="item", item=file.id, retry_after="17")
    status, told = await _batch(
        here,
        {"url": f"{own}/root"},
        {"url": f"{own}/items/{file.id}"},
        {"url": f"{own}/items/{file.id}/content"},
        {"url": f"{own}/items/missing"},
        {"url": f"{own}/root/children"},
    )
    assert status == 200
    assert [told[str(number)]["status"] for number in range(5)] == [200, 429, 302, 404, 429]
    assert list(told) == ["4", "3", "2", "1", "0"]
    assert told["0"]["body"]["name"] == "root"
    assert told["1"]["headers"]["Retry-After"] == "17"
    assert told["1"]["body"]["error"]["code"] == "activityLimitReached"
    assert "tempauth" in told["2"]["headers"]["Location"]
    log = list(here.app.log)
    assert [entry.batch for entry in log] == [None, 1, 1, 1, 1, 1]
    assert here.app.log.units() == 6
    assert here.app.log.max_in_flight == 1


async def test_members_that_depend_on_others(here: Desk) -> None:
    own = f"/drives/{here.drive.id}"
    _, told = await _batch(
        here,
        {"url": f"{own}/items/missing"},
        {"url": f"{own}/root", "dependsOn": ["0"]},
        {"url": f"{own}/root"},
    )
    assert [told[str(number)]["status"] for number in range(3)] == [404, 424, 200]


@pytest.mark.parametrize(
    "requests",
    [
        [],
        [{"url": "/me/drive"}] * 21,
        [{"url": "/me/drive", "id": "a"}] * 2,
        [{"url": "https://elsewhere.invalid/me/drive"}],
        [{"url": "/me/drive", "dependsOn": ["7"]}],
    ],
)
async def test_a_batch_that_makes_no_sense_is_refused(
    here: Desk, requests: list[dict[str, Any]]
) -> None:
    status, told = await _batch(here, *requests)
    assert (status, told["error"]["code"]) == (400, "invalidRequest")
