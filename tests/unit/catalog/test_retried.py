"""What a person tries again: drives that wait for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog import reminders
from drivefeed.catalog.control import matching_connections, retry_drives, set_paused
from drivefeed.catalog.pages import note_drive
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from unit.catalog.rig import Rig

LATER = 300_000


async def ask(rig: Rig) -> None:
    """Leave the drive to a person, with its next look far away."""
    await note_drive(
        rig.catalog, rig.drive_id, hold=None, attention=Reason.ATTEMPTS_EXHAUSTED, detail="It fell."
    )
    async with rig.catalog.write() as connection:
        await reminders.postpone(connection, rig.drive_id, due_at=rig.catalog.clock.now() + LATER)


async def names(rig: Rig, which: str | None, reason: str | None = None) -> list[str]:
    return [one.name for one in await retry_drives(rig.catalog, which, reason=reason)]


async def test_a_drive_that_waits_for_a_person_is_asked_at_once(rig: Rig) -> None:
    assert await names(rig, None) == []
    await ask(rig)
    assert await rig.due(rig.drive_id) == ("discover", LATER)
    assert await names(rig, None) == ["docs"]
    assert await rig.due(rig.drive_id) == ("discover", 0)


@pytest.mark.parametrize(
    ("which", "reason"), [("other", None), (None, "drive_gone"), ("docs", "encrypted")]
)
async def test_others_are_left_alone(rig: Rig, which: str | None, reason: str | None) -> None:
    await ask(rig)
    assert await names(rig, which, reason) == []
    assert await rig.due(rig.drive_id) == ("discover", LATER)
    assert await names(rig, "DOCS", "attempts_exhausted") == ["docs"]


async def test_what_is_paused_stays_so(rig: Rig) -> None:
    await ask(rig)
    (docs,) = await matching_connections(rig.catalog, "docs")
    await set_paused(rig.catalog, docs, paused=True)
    assert await names(rig, None) == []
