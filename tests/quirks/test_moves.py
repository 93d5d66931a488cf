"""Quirks of moves, removals and returns (GRAPH B-1): nothing is missed, nothing goes unproven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from drivefeed.catalog.tables import documents, imports
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from quirks.stand import Docs

    Retell = list[Callable[[dict[str, Any]], dict[str, Any]]]


async def test_11_a_renamed_folder_renames_what_lies_in_it_without_a_download(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.rename(docs.sub.id, "renamed")
    stand.drive.rename(docs.docs.id, "papers")
    await stand.sync()
    assert set(await stand.tree()) == {"papers/a.txt", "papers/renamed/b.txt"}
    assert stand.downloads() == 2


async def test_12_a_folder_moved_in_brings_files_that_are_never_told_again(docs: Docs) -> None:
    stand = docs.stand
    outside = stand.drive.create_folder("outside", docs.other.id)
    file = stand.drive.create_file("c.txt", b"contents of c", outside.id)
    await stand.sync()
    assert file.id not in await stand.wanted()
    told = len(stand.asked("delta"))
    stand.drive.move(outside.id, docs.sub.id)
    await stand.sync()
    assert len(stand.asked("delta")) == told + 1
    assert "docs/sub/outside/c.txt" in await stand.tree()
    assert stand.asked("children") == []


@pytest.mark.parametrize("moved", ["file", "folder", "ancestor"])
async def test_13_what_moves_out_leaves_and_comes_back_without_a_download(
    docs: Docs, moved: str
) -> None:
    stand = docs.stand
    one = {"file": docs.b, "folder": docs.sub, "ancestor": docs.sub}[moved]
    if moved == "ancestor":
        deep = stand.drive.create_folder("deep", docs.sub.id)
        stand.drive.move(docs.b.id, deep.id)
        await stand.sync()
    stand.drive.move(one.id, docs.other.id)
    await stand.sync()
    assert set(await stand.wanted()) == {docs.a.id}
    assert docs.b.id not in await stand.live()
    (row,) = await stand.rows(documents, documents.c.item_id == docs.b.id)
    assert row["unwanted_reason"] == Reason.OUT_OF_SCOPE
    stand.drive.move(one.id, docs.docs.id)
    await stand.sync()
    assert docs.b.id in await stand.live()
    assert stand.downloads() == 2


async def test_14_the_connected_folder_is_followed_by_its_id(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.move(docs.docs.id, docs.other.id, "elsewhere")
    await stand.sync()
    assert set(await stand.tree()) == {"other/elsewhere/a.txt", "other/elsewhere/sub/b.txt"}
    assert await stand.attention(docs.docs) is None


async def test_14_a_connected_folder_that_is_gone_asks_and_loses_nothing(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.delete(docs.docs.id)
    await stand.sync()
    assert await stand.attention(docs.docs) == Reason.FOLDER_GONE
    assert await stand.live() == {docs.a.id, docs.b.id}
    await stand.sync()
    stand.drive.expire_tokens()
    await stand.sync()
    assert await stand.live() == {docs.a.id, docs.b.id}, "however often it is confirmed"
    stand.drive.restore(docs.docs.id)
    stand.drive.delete(docs.b.id)
    await stand.sync()
    assert await stand.attention(docs.docs) is None
    assert await stand.live() == {docs.a.id}
    assert stand.downloads() == 2


async def test_14_an_ancestor_that_is_gone_counts_as_the_folder(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.quirks.descendant_tombstones = False
    stand.drive.move(docs.docs.id, docs.other.id)
    await stand.sync()
    stand.drive.delete(docs.other.id)
    await stand.sync()
    assert await stand.attention(docs.docs) == Reason.FOLDER_GONE
    assert await stand.live() == {docs.a.id, docs.b.id}


async def test_14_a_connected_folder_restored_under_a_new_id_is_the_same_one(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.delete(docs.docs.id)
    await stand.sync()
    again = stand.drive.create_folder("docs")
    sub = stand.drive.create_folder("SUB", again.id)
    a = stand.drive.create_file("a.txt", b"contents of a", again.id)
    changed = stand.drive.create_file("b.txt", b"other contents", sub.id)
    await stand.sync()
    stand.connections[again.id] = stand.connections[docs.docs.id]
    assert await stand.attention(again) is None
    assert await stand.live() == {a.id, changed.id}
    assert stand.downloads() == 3, "only what is not the same"
    assert len(await stand.rows(imports)) == 3
    assert set(await stand.tree()) == {"docs/a.txt", "docs/SUB/b.txt"}


async def test_14_another_folder_of_the_name_is_not_taken_for_it(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.delete(docs.docs.id)
    again = stand.drive.create_folder("docs")
    stand.drive.create_file("a.txt", b"nothing like it", again.id)
    await stand.sync()
    assert await stand.attention(docs.docs) == Reason.FOLDER_GONE
    assert await stand.live() == {docs.a.id, docs.b.id}


@pytest.mark.parametrize("fields", ["profile", "id_only"])
async def test_15_a_tombstone_of_a_folder_takes_along_what_lay_in_it(
    docs: Docs, fields: str
) -> None:
    stand = docs.stand
    stand.drive.quirks.tombstone_fields = fields
    stand.drive.quirks.descendant_tombstones = False
    unknown = stand.drive.create_file("never seen.txt", b"?", docs.other.id)
    stand.drive.delete(unknown.id)
    stand.drive.delete(docs.sub.id)
    await stand.sync()
    assert await stand.live() == {docs.a.id}
    assert (await stand.row()).attention is None


async def test_16_the_answer_is_asked_for_with_its_tombstones(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.quirks.tombstone_fields = "id_only"
    stand.drive.delete(docs.b.id)
    await stand.sync()
    assert await stand.live() == {docs.a.id}


async def test_16_removed_is_another_word_for_deleted(docs: Docs, retell: Retell) -> None:
    stand = docs.stand

    def removed(page: dict[str, Any]) -> dict[str, Any]:
        return {
            **page,
            "value": [
                {"id": one["id"], "@removed": {"reason": "deleted"}} if "deleted" in one else one
                for one in page["value"]
            ],
        }

    retell.append(removed)
    stand.drive.delete(docs.b.id)
    await stand.sync()
    assert await stand.live() == {docs.a.id}


async def test_18_a_listing_that_lags_behind_is_caught_up_with(docs: Docs, retell: Retell) -> None:
    """Delta shows the state of before, while the content is that of now."""
    stand = docs.stand
    stale = docs.a.quickxor

    def lagging(page: dict[str, Any]) -> dict[str, Any]:
        value = [msgspec.to_builtins(one) for one in page["value"]]
        for one in value:
            if one["id"] == docs.a.id:
                one["file"]["hashes"]["quickXorHash"] = stale
                one["size"] = docs.a.size
        return {**page, "value": value}

    retell.append(lagging)
    stand.drive.replace(docs.a.id, b"edited, and nobody sees it")
    new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
    await stand.sync()
    assert (await stand.tree())["docs/a.txt"] == stale
    assert new.id in await stand.live()
    retell.clear()
    stand.drive.touch(docs.a.id)
    await stand.sync()
    assert (await stand.tree())["docs/a.txt"] == stand.drive.tree.items[docs.a.id].quickxor
    assert stand.downloads() == 4


async def test_18_bytes_that_nobody_was_told_of_yet_stand_for_no_version(
    docs: Docs, retell: Retell
) -> None:
    """The file was edited twice; delta tells of the first edit, and the bytes are the second's."""
    stand = docs.stand
    first = stand.drive.replace(docs.a.id, b"first edit")

    def lagging(page: dict[str, Any]) -> dict[str, Any]:
        value = [msgspec.to_builtins(one) for one in page["value"]]
        for one in value:
            if one["id"] == docs.a.id:
                one["file"]["hashes"]["quickXorHash"] = first.quickxor
        return {**page, "value": value}

    retell.append(lagging)
    second = stand.drive.replace(docs.a.id, b"second edit")
    await stand.sync()
    assert (await stand.tree())["docs/a.txt"] == first.quickxor
    retell.clear()
    stand.drive.touch(docs.a.id)
    await stand.sync()
    assert (await stand.tree())["docs/a.txt"] == second.quickxor
    assert "server_modified" not in {one["integrity"] for one in await stand.rows(imports)}


async def test_95_a_removal_reaches_the_index_and_the_store(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.delete(docs.b.id)
    await stand.sync()
    (row,) = await stand.rows(documents, documents.c.item_id == docs.b.id)
    assert (row["wanted_import_id"], row["live_import_id"]) == (None, None)
    (one,) = await stand.rows(imports, imports.c.document_id == row["id"])
    assert one["shown"] is False, "the index was told"
    await stand.pass_time(8 * 24 * 3600, step=24 * 3600)
    (one,) = await stand.rows(imports, imports.c.document_id == row["id"])
    assert one["state"] == "withdrawn"


async def test_96_an_edit_that_changes_no_time_is_seen(docs: Docs) -> None:
    stand = docs.stand
    before = stand.drive.tree.items[docs.a.id]
    stand.drive.replace(docs.a.id, b"edited")
    now = stand.drive.tree.items[docs.a.id]
    stand.drive.tree.annotate(msgspec.structs.replace(now, modified=before.modified))
    await stand.sync()
    assert (await stand.tree())["docs/a.txt"] == now.quickxor
