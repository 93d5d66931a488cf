"""What the state machine found, each in the fewest steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from drivefeed.domain.reasons import Reason
from quirks.stand import FREE

if TYPE_CHECKING:
    from quirks.stand import Docs


@pytest.mark.parametrize("field", ["parentReference", "name"])
async def test_a_move_that_is_told_without_its_place_or_name_is_asked_for(
    docs: Docs, field: str
) -> None:
    stand = docs.stand
    stand.drive.move(docs.a.id, docs.other.id)
    stand.drive.rename(docs.b.id, "renamed.txt")
    stand.sim.faults.add("drop_fields", op="delta", fields=[field], count=2)
    await stand.sync()
    assert set(await stand.tree()) == {"docs/sub/renamed.txt"}
    assert await stand.coverage(docs.docs) == {docs.b.id: None}


async def test_a_changed_filter_is_no_round(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.quirks.cutoff = True
    await stand.sync()
    before = await stand.row()
    assert before.attention is Reason.DRIVE_GONE
    await stand.connect(docs.docs, replace(FREE, subfolders=False))
    await stand.work()
    row = await stand.row()
    assert set(await stand.tree()) == {"docs/a.txt"}, "what is known needs nobody to answer"
    assert row.attention is Reason.DRIVE_GONE, "nobody has answered"
    assert row.last_round_at == before.last_round_at


async def test_a_changed_filter_takes_no_round_away(docs: Docs) -> None:
    stand = docs.stand
    new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
    await stand.connect(docs.docs, replace(FREE, subfolders=False))
    await stand.sync()
    assert await stand.live() == {docs.a.id, new.id}
