"""A folder with very many files is renamed, moved out of what is connected, and moved back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.leaving import approve_removals
from drivefeed.domain.reasons import Reason
from integration.large_folder.ground import large_folder

if TYPE_CHECKING:
    from pathlib import Path

_PUBLISHED = 20
"""How many of the deliveries to the index are done; the others are as well left out."""


@pytest.mark.parametrize(
    "files", [300, pytest.param(100_000, marks=(pytest.mark.soak, pytest.mark.timeout(3600)))]
)
async def test_it_is_renamed_and_moved_out_and_back_without_a_download_or_an_embedding(
    files: int, tmp_path: Path
) -> None:
    async with large_folder(files, tmp_path) as large:
        stand, number = large.stand, files * 2 // 3
        key, total = stand.connections[large.team.id], (files, files, files)
        assert await large.live() == files
        assert await large.books() == total
        assert (await large.find(number))[0].path == f"folder 00000/document {number:07}.txt"
        embedded, mark = large.embedded(), large.stand.sim.log.last

        # Renamed: one item is told, with what it lies in, and nothing is to be done about files.
        large.drive.rename(large.big.id, "Archive")
        drive = await stand.row()
        page = await stand.source.delta(drive.ref, drive.cursor)
        above = {drive.root_item_id, large.team.id}
        assert [one.item_id for one in page.items if one.item_id not in above] == [large.big.id]
        began = time.perf_counter()
        await large.follow()
        large.timed("renamed", began)
        assert await large.due() == {}
        assert await large.live() == files
        assert (await large.find(number))[0].path == f"Archive/document {number:07}.txt"

        # Moved out: the brake asks, and until somebody answers everything is found as before.
        large.drive.move(large.big.id, large.elsewhere.id)
        began = time.perf_counter()
        await large.follow()
        large.timed("moved out of scope", began)
        assert await stand.attention(large.team) == Reason.MASS_REMOVAL
        assert await large.due() == {}
        assert await large.live() == files
        assert (await large.find(number))[0].document_id
        began = time.perf_counter()
        assert await approve_removals(stand.catalog, key) == files
        large.timed("hidden by the approval", began)
        assert await large.live() == 0
        assert await large.find(number) == []
        assert await large.due() == {"publish": files}
        await large.run("publish", most=_PUBLISHED)

        # Moved back within the grace: found again, with the points that never left the index.
        stand.clock.advance(3600)
        large.drive.move(large.big.id, large.team.id)
        began = time.perf_counter()
        await large.follow()
        large.timed("moved back", began)
        assert await stand.attention(large.team) is None
        assert await large.live() == files
        assert set(await large.due()) <= {"publish"}
        await large.run("publish", most=_PUBLISHED)
        assert (await large.find(number))[0].path == f"Archive/document {number:07}.txt"
        assert await large.library.count() == files

        assert await large.books() == total
        assert large.embedded() - embedded == 4, "only the words that were searched for"
        asked = [one.op for one in stand.sim.log.entries() if one.number > mark]
        assert set(asked) == {"delta"}, asked
