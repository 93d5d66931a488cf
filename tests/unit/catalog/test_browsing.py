"""Lists that people page through: whole, in order, filtered, and of their own org alone."""

from __future__ import annotations

import pytest

from drivefeed.catalog.browsing import (
    BadCursor,
    Filter,
    addresses_of,
    org_connection,
    page_of_files,
)
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.passport import passport_in
from drivefeed.catalog.progress import Standing, progress_of
from drivefeed.catalog.recent import lately, youngest_event
from drivefeed.domain.errors import NotFound
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason
from unit.catalog.rig import ROOT, Rig, file, folder

NAMES = ("delta", "Alpha", "charlie", "Bravo", "alpha", "100%_sure", "Ärger")


@pytest.fixture
async def full(rig: Rig) -> Rig:
    files = [
        file(f"i{number}", "docs", content=str(number), name=f"{name}.txt")
        for number, name in enumerate(NAMES)
    ]
    files.append(file("i9", "sub", content="9", name="Zulu.xyz"))
    await rig.enumerate([ROOT, folder("docs"), folder("sub", "docs", "Sub"), *files])
    await rig.bring_live("i0")
    one = await rig.import_of("i1")
    await rig.advance(one, Event.REFUSED, reason=Reason.CORRUPT)
    return rig


async def names(rig: Rig, *, limit: int = 50, **only: object) -> list[str]:
    """Walk through all pages; every page but the last is full."""
    found: list[str] = []
    after = None
    while True:
        page = await page_of_files(
            rig.catalog,
            rig.org_id,
            rig.connections["docs"],
            only=Filter(**only),  # type: ignore[arg-type]
            after=after,
            limit=limit,
        )
        found += [one.path for one in page.files]
        if page.next is None:
            return found
        assert len(page.files) == limit
        after = page.next


async def test_pages_are_whole_and_in_the_order_of_names(full: Rig) -> None:
    whole = await names(full)

    assert whole[:4] == ["100%_sure.txt", "Alpha.txt", "alpha.txt", "Bravo.txt"]
    assert "Sub/Zulu.xyz" in whole
    assert len(whole) == 8
    for limit in (1, 2, 3, 7, 8):
        assert await names(full, limit=limit) == whole


async def test_filters(full: Rig) -> None:
    assert await names(full, standing=Standing.SEARCHABLE) == ["delta.txt"]
    assert await names(full, standing=Standing.FAILED) == ["Alpha.txt"]
    assert await names(full, standing=Standing.HELD) == []
    assert await names(full, state=State.REJECTED) == ["Alpha.txt"]
    assert await names(full, reason="corrupt") == ["Alpha.txt"]
    assert await names(full, text="LPH") == ["Alpha.txt", "alpha.txt"]
    assert await names(full, text="%_s") == ["100%_sure.txt"]
    assert await names(full, text="%") == ["100%_sure.txt"]
    assert await names(full, text="Ärg") == ["Ärger.txt"]
    assert await names(full, text="lph", standing=Standing.SEARCHABLE) == []


async def test_standings_of_the_list_are_those_of_the_count(full: Rig) -> None:
    (progress,) = await progress_of(full.catalog, org_id=full.org_id)
    for standing in Standing:
        assert len(await names(full, standing=standing)) == progress.counts[standing], standing


@pytest.mark.parametrize("cursor", ["", "x", "e30", "WzEsMl0", "é"])
async def test_a_cursor_that_we_never_gave_is_refused(full: Rig, cursor: str) -> None:
    with pytest.raises(BadCursor):
        await page_of_files(
            full.catalog, full.org_id, full.connections["docs"], only=Filter(), after=cursor
        )


async def test_another_org_finds_nothing(full: Rig) -> None:
    other = await ensure_org(full.catalog, "other")
    where = full.connections["docs"]
    document = (await full.document("i0"))["id"]

    assert await progress_of(full.catalog, org_id=other) == []
    assert await lately(full.catalog, other) == {}
    assert await addresses_of(full.catalog, other, [document]) == {}
    for ask in (
        org_connection(full.catalog, other, where),
        page_of_files(full.catalog, other, where, only=Filter()),
        passport_in(full.catalog, other, where, "i0"),
    ):
        with pytest.raises(NotFound):
            await ask
    assert (await passport_in(full.catalog, full.org_id, where, "i0")).path == "delta.txt"
    assert await addresses_of(full.catalog, full.org_id, [document]) == {document: (where, "i0")}
    with pytest.raises(NotFound):
        await passport_in(full.catalog, full.org_id, where, "no such item")


async def test_what_happened_lately_tells_pace_and_change(full: Rig) -> None:
    before = await youngest_event(full.catalog)
    clock = full.catalog.clock
    for item in ("i2", "i3", "i4"):
        clock.turn(seconds=2)  # type: ignore[attr-defined]  # a manual clock
        await full.bring_live(item)
    clock.turn(seconds=2)  # type: ignore[attr-defined]  # the same

    found = (await lately(full.catalog, full.org_id))[full.connections["docs"]]

    assert found.latest == await youngest_event(full.catalog) > before
    assert found.files_a_second == pytest.approx(5 / 8)
    clock.turn(seconds=120)  # type: ignore[attr-defined]  # the same
    calm = (await lately(full.catalog, full.org_id))[full.connections["docs"]]
    assert calm.files_a_second is None
