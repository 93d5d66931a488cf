"""Ticks of a process that ends leave no traceback; those that fail do."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from drivefeed.services.schedule import Schedule

if TYPE_CHECKING:
    import pytest

    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import ObjectStore
    from drivefeed.services.relay import Relay

LONG = 3600.0


def schedule_of_nothing() -> Schedule:
    """Return one whose own jobs never come due, so that it needs no parts."""
    return Schedule(
        cast("Catalog", None),
        cast("Relay", None),
        cast("ObjectStore", None),
        owner="here",
        role="test",
        is_whole=False,
    )


async def test_a_tick_that_is_ended_before_its_first_step_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun = 0

    async def tick() -> None:
        nonlocal begun
        begun += 1

    schedule = schedule_of_nothing()
    schedule.start()
    schedule.every(LONG, "some", tick)
    scheduler = schedule._scheduler
    submit = scheduler._lookup_executor("default").submit_job
    # APScheduler ends at the loop's next turn, here between handing out a job and its first step.
    asyncio.get_running_loop().call_soon(submit, scheduler.get_job("some"), [datetime.now(UTC)])
    schedule.stop()
    await asyncio.sleep(0.05)
    assert begun == 0
    assert [one for one in caplog.records if one.exc_info] == []


async def test_what_is_no_end_has_its_line(caplog: pytest.LogCaptureFixture) -> None:
    schedule = schedule_of_nothing()
    schedule.start()

    async def fails() -> Any:
        raise ValueError("a defect")

    # As APScheduler would see it, without the schedule's own care.
    schedule._scheduler.add_job(fails, "interval", seconds=0.001)
    await asyncio.sleep(0.1)
    schedule.stop()
    assert any("a defect" in str(one.exc_info) for one in caplog.records if one.exc_info)
