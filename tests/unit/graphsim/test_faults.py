from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphsim
from graphsim.clock import ManualClock
from graphsim.fault_kinds import FAULT_KINDS, table
from graphsim.faults import Asked, Faults
from unit.graphsim.kit import desk


def _asked(**facts: Any) -> Asked:
    return Asked(method="GET", url="/v1.0/x", **facts)


def _struck(faults: Faults, items: list[str]) -> list[str]:
    return [item for item in items if faults.take(_asked(op="content", item=item), "status")]


def test_chance_follows_from_the_seed_and_not_from_the_order() -> None:
    items = [f"i{number}" for number in range(200)]
    struck = []
    for order in (items, items[::-1]):
        faults = Faults(ManualClock(), seed=5)
        faults.add("status", op="content", probability=0.3, count=-1)
        struck.append(sorted(_struck(faults, order)))
    assert struck[0] == struck[1]
    assert 30 < len(struck[0]) < 90
    other = Faults(ManualClock(), seed=6)
    other.add("status", op="content", probability=0.3, count=-1)
    assert sorted(_struck(other, items)) != struck[0]


def test_once_for_each_item() -> None:
    faults = Faults(ManualClock())
    faults.add("status", op="content", each=True, skip=1, count=1)
    assert _struck(faults, ["a", "b", "a", "b", "a", "b", "c"]) == ["a", "b"]


def test_a_fault_of_a_span_of_time() -> None:
    clock = ManualClock()
    faults = Faults(clock)
    faults.add("status", wait=60, lasts=30, count=-1)
    struck = []
    for _ in range(5):
        struck.append(faults.take(_asked(), "status") is not None)
        clock.advance(25)
    assert struck == [False, False, False, True, False]
    assert faults.waiting() == []


def test_a_fault_by_pattern() -> None:
    faults = Faults(ManualClock())
    faults.add("status", pattern=r"/items/\w+/content$")
    assert faults.take(Asked(method="GET", url="/v1.0/items/a/children"), "status") is None
    assert faults.take(Asked(method="GET", url="/v1.0/items/a/content"), "status")


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        ("explode", {}, "no fault called explode; choose from alter"),
        ("stall", {"fields": ["size"]}, "The fault stall takes no fields; it takes after, seconds"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(
    kind: str, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence):
        Faults().add(kind, **options)


async def test_faults_and_quirks_from_a_file() -> None:
    script = """
seed = 9

[[fault]]
kind = "status"
op = "delta"
page = 1
status = 502
retry_after = "soon"

[[quirks]]
drive = "memory"
hashes = "absent"
"""
    async with desk() as here:
        url = "http://admin"
        from httpx import ASGITransport, AsyncClient

        from graphsim.admin import admin_app

        async with AsyncClient(transport=ASGITransport(admin_app(here.app)), base_url=url) as admin:
            kind = {"content-type": "application/toml"}
            made = await admin.post("/faults", content=script, headers=kind)
            assert made.status_code == 201
            assert here.app.faults.seed == 9
            assert here.drive.quirks.hashes == "absent"
            answer = await here.get("root/delta")
            assert (answer.status_code, answer.headers["retry-after"]) == (502, "soon")
            for wrong in ("x = ", "[[fault]]\nkind = 'explode'", "[[quirks]]\nhashes = 'none'"):
                refused = await admin.post("/faults", content=wrong, headers=kind)
                assert refused.status_code == 400
                assert refused.json()["error"]


def test_the_readme_has_the_table_of_kinds() -> None:
    readme = Path(graphsim.__file__).with_name("README.md").read_text()
    assert table() in readme
    assert all(kind.does for kind in FAULT_KINDS.values())
