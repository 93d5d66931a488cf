"""Quirks of pages, links and tokens (GRAPH B-1): the rounds end, and end with the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain import delta_guards
from drivefeed.domain.reasons import Reason
from drivefeed.stages import discover_groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphsim.serving import GraphSim
    from quirks.stand import Docs, Stand

    Retell = list[Callable[[dict[str, Any]], dict[str, Any]]]


def enumerations(stand: Stand) -> int:
    """How often the drive was begun to be listed from the start."""
    return sum("token=" not in one.url for one in stand.asked("delta"))


async def test_01_empty_pages_end_nothing(docs: Docs) -> None:
    stand = docs.stand
    new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
    stand.drive.expire_tokens()
    for skip in (1, 2, 5):
        stand.sim.faults.add("empty_page", op="delta", skip=skip, count=3)
    await stand.sync()
    assert set(await stand.wanted()) == {docs.a.id, docs.b.id, new.id}
    assert await stand.attention(docs.docs) is None
    assert stand.downloads() == 3


async def test_02_a_page_that_leads_to_itself_is_left_and_the_position_kept(docs: Docs) -> None:
    stand = docs.stand
    before = (await stand.row()).cursor
    stand.drive.replace(docs.a.id, b"edited")
    loop = stand.sim.faults.add("loop", op="delta", count=-1)
    asked = len(stand.asked("delta"))
    await stand.sync()
    assert len(stand.asked("delta")) - asked == 1
    row = await stand.row()
    assert (row.cursor, row.attention, row.enumerating) == (before, None, False)
    await stand.pass_time(90)
    row = await stand.row()
    assert row.enumerating, "once more, and everything is listed instead"
    assert row.attention is Reason.SOURCE_MISBEHAVES
    assert "in a circle" in str(row.detail)
    assert set(await stand.wanted()) == {docs.a.id, docs.b.id}
    stand.sim.faults.clear(loop.id)
    await stand.pass_time(300)
    row = await stand.row()
    assert (row.attention, row.given_up, row.enumerating) == (None, 0, False)
    assert (await stand.tree())["docs/a.txt"] == stand.drive.tree.items[docs.a.id].quickxor
    assert stand.downloads() == 3


async def test_02_links_that_are_spelled_anew_each_time_end_too(
    docs: Docs, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = docs.stand
    monkeypatch.setattr(delta_guards, "MOST_BARREN_PAGES", 10)
    stand.drive.create_file("new.txt", b"new", docs.docs.id)
    stand.sim.faults.add("loop", op="delta", fresh=True, count=60)
    asked = len(stand.asked("delta"))
    await stand.sync()
    assert len(stand.asked("delta")) - asked <= 13
    await stand.pass_time(3600)
    assert "docs/new.txt" in await stand.tree()
    assert (await stand.row()).attention is None


async def test_03_a_failed_download_is_made_up_for_though_delta_tells_nothing(docs: Docs) -> None:
    stand = docs.stand
    new = [stand.drive.create_file(f"{n}.txt", b"%d" % n, docs.docs.id) for n in range(4)]
    for one in new:
        stand.sim.faults.add("status", op="content", item=one.id, status=500)
    await stand.sync()
    assert stand.downloads() == 2, "all of them failed"
    assert (await stand.row()).between_rounds, "and the round was over"
    asked = len(stand.asked("delta"))
    await stand.pass_time(60)
    assert len(stand.asked("delta")) == asked
    assert {one.id for one in new} <= await stand.live()


@pytest.mark.parametrize("location", [True, False])
@pytest.mark.parametrize("inner", ["resyncChangesApplyDifferences", "SyncStateNotFound"])
async def test_04_an_expired_token_lists_everything_and_removes_what_is_gone(
    docs: Docs,
    inner: str,
    location: bool,  # noqa: FBT001
) -> None:
    stand = docs.stand
    stand.drive.delete(docs.b.id)
    new = stand.drive.create_file("new.txt", b"new", docs.sub.id)
    stand.sim.faults.add("gone", op="delta", location=location, inner=inner)
    await stand.sync()
    assert set(await stand.wanted()) == {docs.a.id, new.id}
    assert enumerations(stand) == 2
    assert stand.downloads() == 3


async def test_06_a_folder_made_anew_under_its_old_name_does_not_keep_old_files(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.delete(docs.sub.id)
    again = stand.drive.create_folder("sub", docs.docs.id)
    new = stand.drive.create_file("b.txt", b"other contents", again.id)
    stand.drive.expire_tokens()
    await stand.sync()
    assert set(await stand.wanted()) == {docs.a.id, new.id}


async def test_08_the_last_of_several_occurrences_counts(docs: Docs, retell: Retell) -> None:
    stand = docs.stand
    old = {"name": "before.txt", "parentReference": {"id": docs.other.id}}

    def twice(page: dict[str, Any]) -> dict[str, Any]:
        files = [one for one in page["value"] if one["id"] == docs.a.id]
        return {**page, "value": [{**one, **old} for one in files] + page["value"]}

    retell.append(twice)
    stand.drive.rename(docs.a.id, "after.txt")
    await stand.sync()
    assert set(await stand.tree()) == {"docs/after.txt", "docs/sub/b.txt"}
    stand.drive.expire_tokens()
    await stand.sync()
    assert set(await stand.tree()) == {"docs/after.txt", "docs/sub/b.txt"}
    assert stand.downloads() == 2


async def test_09_children_before_their_folders(stand: Stand, sim: GraphSim) -> None:
    deep = docs = stand.drive.create_folder("docs")
    for name in "abcdefg":
        deep = stand.drive.create_folder(name, deep.id)
    file = stand.drive.create_file("deep.txt", b"deep", deep.id)

    def backwards() -> Any:
        return reversed(list(walk()))

    walk = stand.drive.tree.walk
    stand.drive.tree.walk = backwards  # type: ignore[method-assign]
    stand.sim.faults.add("shuffle", op="delta", skip=1, count=1)
    await stand.connect(docs)
    await stand.sync()
    assert set(await stand.wanted()) == {file.id}


@pytest.mark.parametrize("hidden", ["folder", "root", "both"])
async def test_09_folders_that_are_never_sent_are_asked_for(
    stand: Stand, retell: Retell, hidden: str
) -> None:
    docs = stand.drive.create_folder("docs")
    sub = stand.drive.create_folder("sub", docs.id)
    file = stand.drive.create_file("x.txt", b"x", sub.id)
    root = stand.drive.tree.root_id
    away = {"folder": {sub.id}, "root": {root}, "both": {docs.id, root}}[hidden]
    retell.append(
        lambda page: {**page, "value": [one for one in page["value"] if one["id"] not in away]}
    )
    await stand.connect(docs)
    await stand.sync()
    assert await stand.tree() == {"docs/sub/x.txt": file.quickxor}
    assert await stand.attention(docs) is None
    asked = len(stand.asked("item"))
    assert asked == len(away)
    await stand.sync()
    assert len(stand.asked("item")) == asked, "once is enough"


@pytest.mark.parametrize("hidden", ["folder", "connected", "root", "all", "empty"])
async def test_09_folders_left_out_of_a_later_listing_are_asked_for(
    docs: Docs, retell: Retell, hidden: str
) -> None:
    stand = docs.stand
    root = stand.drive.tree.root_id
    away = {
        "folder": {docs.sub.id},
        "connected": {docs.docs.id},
        "root": {root},
        "all": {docs.docs.id, docs.sub.id, root},
        # Nothing that is told lies in them either.
        "empty": {one.id for one in (docs.docs, docs.sub, docs.a, docs.b)} | {root},
    }[hidden]
    if hidden == "empty":
        stand.drive.delete(docs.a.id)
        stand.drive.delete(docs.b.id)
    retell.append(
        lambda page: {**page, "value": [one for one in page["value"] if one["id"] not in away]}
    )
    stand.drive.expire_tokens()
    await stand.sync()
    assert enumerations(stand) == 2
    assert await stand.attention(docs.docs) is None
    there = set() if hidden == "empty" else {docs.a.id, docs.b.id}
    assert await stand.live() == set(await stand.wanted()) == there
    asked = len(stand.asked("item"))
    await stand.sync()
    assert len(stand.asked("item")) == asked, "once is enough"


@pytest.mark.parametrize("field", ["parentReference", "name", "file"])
async def test_09_an_item_told_without_its_place_or_name_is_asked_for(
    docs: Docs, field: str
) -> None:
    stand = docs.stand
    new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
    stand.sim.faults.add("drop_fields", op="delta", fields=[field], count=1)
    await stand.sync()
    assert new.id in await stand.live()
    assert "docs/new.txt" in await stand.tree()


async def test_17_what_is_not_told_is_not_gone(docs: Docs) -> None:
    stand = docs.stand
    for _ in range(3):
        await stand.sync()
    stand.drive.create_file("new.txt", b"new", docs.docs.id)
    await stand.sync()
    assert {docs.a.id, docs.b.id} <= await stand.live()
    assert enumerations(stand) == 1


async def test_19_short_pages_end_nothing(stand: Stand) -> None:
    docs = stand.drive.create_folder("docs")
    files = {stand.drive.create_file(f"{n}.txt", b"%d" % n, docs.id).id for n in range(9)}
    stand.sim.app.graph.pages.size = 1
    await stand.connect(docs)
    await stand.sync()
    assert set(await stand.wanted()) == files
    assert len(stand.asked("delta")) == 11
    assert all("top=" not in one.url for one in stand.asked("delta"))


@pytest.mark.parametrize("status", [500, 502, 504])
async def test_22_a_listing_goes_on_from_the_page_that_failed(stand: Stand, status: int) -> None:
    docs = stand.drive.create_folder("docs")
    files = {stand.drive.create_file(f"{n:02}.txt", b"%d" % n, docs.id).id for n in range(18)}
    stand.sim.faults.add("status", op="delta", status=status, skip=2, count=3)
    await stand.connect(docs)
    await stand.sync()
    assert len(await stand.wanted()) == 8, "two pages are in, two folders among them"
    await stand.pass_time(240)
    assert set(await stand.wanted()) == files
    assert enumerations(stand) == 1
    assert len(stand.asked("delta")) == 4 + 3


async def test_22_a_link_that_fails_for_hours_is_given_up_for_a_listing(docs: Docs) -> None:
    stand = docs.stand
    cursor = str((await stand.row()).cursor)
    token = cursor.rpartition("token=")[2]
    stand.sim.faults.add("status", op="delta", url=token[-30:], status=500, count=-1)
    stand.drive.delete(docs.b.id)
    await stand.sync()
    await stand.pass_time(5 * 3600, step=600)
    row = await stand.row()
    assert (row.cursor, enumerations(stand)) == (cursor, 1)
    assert row.attention is Reason.ATTEMPTS_EXHAUSTED
    await stand.pass_time(2 * 3600, step=600)
    assert set(await stand.wanted()) == {docs.a.id}
    row = await stand.row()
    assert (row.attention, row.failing_since, enumerations(stand)) == (None, None, 2)
    assert stand.downloads() == 2


async def test_22_a_service_that_is_down_for_hours_costs_no_position(docs: Docs) -> None:
    stand = docs.stand
    cursor = (await stand.row()).cursor
    down = stand.sim.faults.add("status", op="delta", status=500, count=-1)
    await stand.sync()
    await stand.pass_time(8 * 3600, step=1800)
    row = await stand.row()
    assert (row.cursor, row.enumerating) == (cursor, False)
    stand.sim.faults.clear(down.id)
    stand.drive.delete(docs.b.id)
    await stand.pass_time(600)
    assert set(await stand.wanted()) == {docs.a.id}


async def test_26_links_in_another_form_are_followed_as_they_are(stand: Stand) -> None:
    stand.drive.quirks.link_form = "function"
    docs = stand.drive.create_folder("docs")
    files = {stand.drive.create_file(f"{n}.txt", b"%d" % n, docs.id).id for n in range(9)}
    await stand.connect(docs)
    await stand.sync()
    assert set(await stand.wanted()) == files
    new = stand.drive.create_file("new.txt", b"new", docs.id)
    await stand.sync()
    assert new.id in await stand.wanted()
    assert any("microsoft.graph.delta(token=" in one.url for one in stand.asked("delta"))


async def test_29_a_page_with_neither_link_ends_no_round(docs: Docs, retell: Retell) -> None:
    stand = docs.stand
    cursor = (await stand.row()).cursor
    retell.append(lambda page: {"value": page["value"]})
    stand.drive.delete(docs.b.id)
    await stand.sync()
    row = await stand.row()
    assert (row.cursor, row.pages_in_round) == (cursor, 0)
    assert set(await stand.wanted()) == {docs.a.id, docs.b.id}
    assert "neither goes on nor ends" in stand.errors[-1]
    retell.clear()
    await stand.pass_time(60)
    assert set(await stand.wanted()) == {docs.a.id}


async def test_49_every_page_of_a_list_is_read(stand: Stand) -> None:
    folder = stand.drive.create_folder("many")
    for number in range(12):
        stand.drive.create_folder(f"{number:02}", folder.id)
    look = await stand.source.look(next(iter(stand.accounts)))
    path = f"/drives/{stand.drive.id}/items/{folder.id}/children"
    assert len(await look.listing(path, "folders")) == 12


@pytest.mark.parametrize(("most_items", "commits"), [(1, 3), (2_000, 2)])
async def test_50_each_page_is_kept_with_its_position(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, most_items: int, commits: int
) -> None:
    """Each page by itself, or those behind the first one in a commit with the last one's link."""
    monkeypatch.setattr(discover_groups, "MOST_ITEMS", most_items)
    monkeypatch.setattr(discover_groups, "LONGEST_WAIT_SECONDS", 60.0)
    docs = stand.drive.create_folder("docs")
    for number in range(18):
        stand.drive.create_file(f"{number:02}.txt", b"%d" % number, docs.id)
    stand.sim.faults.add("status", op="delta", status=500, skip=3, count=-1)
    await stand.connect(docs)
    await stand.wake()
    await stand.work()
    row = await stand.row()
    assert row.pages_in_round == 3
    assert stand.passed.count("page.commit.after") == commits
    assert len(await stand.live()) == 13, "what was listed is copied before the listing ends"
