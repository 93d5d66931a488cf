"""Quirks of single items (GRAPH B-2): odd shapes are recorded, and no oddity costs a download."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from drivefeed.catalog.connecting import ensure_drive
from drivefeed.catalog.tables import drives, imports
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import RemoteDrive
from graphsim.items import Profile
from quirks.stand import Docs, standing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from graphsim.serving import GraphSim

    Retell = list[Callable[[dict[str, Any]], dict[str, Any]]]


def each(change: Callable[[dict[str, Any]], Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Change the items of pages in place."""

    def changed(page: dict[str, Any]) -> dict[str, Any]:
        value = json.loads(json.dumps(page["value"]))
        for one in value:
            change(one)
        return {**page, "value": value}

    return changed


async def test_30_a_notebook_and_what_lies_in_it_are_skipped_by_name(docs: Docs) -> None:
    stand = docs.stand
    book = stand.drive.create_package("Notes", docs.docs.id)
    section = stand.drive.create_file("one.txt", b"section", book.id)
    await stand.sync()
    said = await stand.coverage(docs.docs)
    assert (said[book.id], said[section.id]) == (Reason.PACKAGE, Reason.PACKAGE)
    await stand.sync()
    assert await stand.live() == {docs.a.id, docs.b.id}
    assert stand.downloads() == 2


async def test_31_what_is_of_no_known_kind_is_recorded_as_such(docs: Docs) -> None:
    stand = docs.stand
    bundle = stand.drive.create_file("album.txt", b"x", docs.docs.id, bundle={}, file=None)
    nothing = stand.drive.create_file("what.txt", b"y", docs.docs.id, file=None)
    await stand.sync()
    said = await stand.coverage(docs.docs)
    assert (said[bundle.id], said[nothing.id]) == (Reason.UNKNOWN_KIND, Reason.UNKNOWN_KIND)
    stand.drive.annotate(nothing.id, file={"hashes": {"quickXorHash": nothing.quickxor}})
    await stand.sync()
    assert nothing.id in await stand.live()


async def test_31_a_thing_of_no_known_kind_takes_along_what_lies_in_it(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.quirks.descendant_tombstones = False
    odd = stand.drive.create_folder("odd", docs.docs.id)
    stand.drive.annotate(odd.id, folder=None)
    file = stand.drive.create_file("in.txt", b"in", odd.id)
    await stand.sync()
    assert file.id in await stand.live()
    stand.drive.delete(odd.id)
    await stand.sync()
    assert await stand.live() == {docs.a.id, docs.b.id}


async def test_32_a_missing_size_is_unknown_and_not_nothing(docs: Docs, retell: Retell) -> None:
    stand = docs.stand
    retell.append(each(lambda one: one.pop("size", None)))
    new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
    await stand.sync()
    assert new.id in await stand.live()


async def test_33_a_hash_that_appears_later_is_no_new_version(docs: Docs, retell: Retell) -> None:
    stand = docs.stand

    def unhashed(one: dict[str, Any]) -> None:
        if "file" in one:
            one["file"]["hashes"] = {}

    retell.append(each(unhashed))
    new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
    await stand.sync()
    assert new.id in await stand.live()
    retell.clear()
    stand.drive.expire_tokens()
    await stand.sync()
    assert stand.downloads() == 3
    assert len(await stand.rows(imports)) == 3
    stand.drive.replace(new.id, b"edited")
    await stand.sync()
    assert stand.downloads() == 4


async def test_35_tags_that_change_alone_cost_nothing(docs: Docs) -> None:
    stand = docs.stand
    for content in (False, True, True):
        stand.drive.touch(docs.a.id, content=content)
        await stand.sync()
    assert stand.downloads() == 2
    assert len(await stand.rows(imports)) == 2


async def test_37_business_delta_tells_no_ctag(docs: Docs, retell: Retell) -> None:
    stand = docs.stand
    seen: list[bool] = []
    retell.append(each(lambda one: seen.append("cTag" in one)))
    stand.drive.touch(docs.a.id)
    await stand.sync()
    assert seen
    assert not any(seen)
    stand.drive.replace(docs.a.id, b"edited")
    await stand.sync()
    assert stand.downloads() == 3


async def test_39_a_drive_is_one_drive_however_its_id_is_written(
    sim: GraphSim, tmp_path: Path
) -> None:
    async with standing(sim, tmp_path, profile=Profile.PERSONAL) as stand:
        account_id = next(iter(stand.accounts))
        spelled = (stand.drive.id.upper(), stand.drive.id.lower(), stand.drive.id.lstrip("0"))
        for remote_id in spelled:
            again = await ensure_drive(
                stand.catalog,
                org_id=stand.org_id,
                account_id=account_id,
                cloud="global",
                remote=RemoteDrive(remote_id, "personal", "x", None, "root"),
                interval_ms=60_000,
            )
            assert again == stand.drive_id
        assert len(await stand.rows(drives)) == 1


async def test_40_a_drive_whose_ids_are_all_new_is_matched_without_an_import(
    docs: Docs, retell: Retell
) -> None:
    stand = docs.stand
    before = await stand.rows(imports)
    stand.drive.expire_tokens()
    _give_new_ids(docs)
    await stand.sync()
    await stand.sync()
    assert len(await stand.live()) == 2
    assert not (await stand.live()) & {docs.a.id, docs.b.id}
    assert set(await stand.tree()) == {"docs/a.txt", "docs/sub/b.txt"}
    assert stand.downloads() == 2
    after = await stand.rows(imports)
    assert [one["id"] for one in after] == [one["id"] for one in before]
    row = await stand.row()
    assert (row.root_item_id, row.attention) == (stand.drive.tree.root_id, None)
    # And life goes on under the new ids.
    (a,) = [one for one in stand.drive.tree.items.values() if one.name == "a.txt"]
    stand.drive.replace(a.id, b"edited")
    await stand.sync()
    assert (await stand.tree())["docs/a.txt"] == stand.drive.tree.items[a.id].quickxor
    assert stand.downloads() == 3


async def test_40_another_root_among_the_changes_is_noticed(docs: Docs) -> None:
    stand = docs.stand
    _give_new_ids(docs)
    stand.drive.touch(
        next(one for one in stand.drive.tree.items.values() if one.name == "a.txt").id
    )
    await stand.sync()
    assert set(await stand.tree()) == {"docs/a.txt", "docs/sub/b.txt"}
    assert all(key.startswith("NEW") for key in await stand.wanted())
    assert stand.downloads() == 2


async def test_40_a_root_that_got_another_id_alone_costs_nothing(docs: Docs) -> None:
    stand = docs.stand
    whole = await stand.connect(stand.drive.tree.root_id)
    await stand.sync()
    stand.drive.tree.rename_root("01ANOTHERROOT")
    await stand.sync()
    stand.connections["01ANOTHERROOT"] = whole
    assert await stand.attention("01ANOTHERROOT") is None
    assert await stand.live() == {docs.a.id, docs.b.id}
    new = stand.drive.create_file("new.txt", b"new")
    await stand.sync()
    assert await stand.live() == {docs.a.id, docs.b.id, new.id}
    assert stand.downloads() == 3


def _give_new_ids(docs: Docs) -> None:
    """What the migration of 2025 did to some personal drives."""
    drive = docs.stand.drive
    tree = drive.tree

    def new(identifier: str) -> str:
        return f"NEW{identifier}"

    old = list(tree.items.values())
    tree.items.clear()
    tree._children.clear()
    tree._sizes.clear()
    tree._log.clear()
    for one in old:
        parent = new(one.parent_id) if one.parent_id else None
        again = msgspec.structs.replace(one, id=new(one.id), parent_id=parent)
        tree._index(again)
        tree._log[again.id] = None
    tree.root_id = new(tree.root_id)
    drive._bodies = {new(key): body for key, body in drive._bodies.items()}


async def test_42_names_with_percent_and_hash_signs_are_as_they_are(docs: Docs) -> None:
    stand = docs.stand
    names = ("test%46.txt", "a#b.txt", "100%.txt", "50%25.txt")
    for name in names:
        stand.drive.create_file(name, name.encode(), docs.docs.id)
    await stand.sync()
    assert {f"docs/{name}" for name in names} <= set(await stand.tree())
    assert set(names) <= await stand.names()


async def test_44_a_name_that_changes_its_case_alone_is_followed(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.rename(docs.a.id, "A.TXT")
    stand.drive.rename(docs.sub.id, "Sub")
    await stand.sync()
    assert set(await stand.tree()) == {"docs/A.TXT", "docs/Sub/b.txt"}
    assert stand.downloads() == 2


async def test_45_a_shortcut_is_recorded_and_not_followed(docs: Docs) -> None:
    stand = docs.stand
    remote = {"id": "01ELSEWHERE", "folder": {}, "parentReference": {"driveId": "b!another"}}
    link = stand.drive.create_folder("shared.txt", docs.docs.id)
    stand.drive.annotate(link.id, remoteItem=remote)
    await stand.sync()
    assert (await stand.coverage(docs.docs))[link.id] == Reason.SHORTCUT
    assert stand.asked("children") == []


async def test_46_the_vault_is_skipped_by_name_and_nothing_is_asked_of_it(
    sim: GraphSim, tmp_path: Path
) -> None:
    async with standing(sim, tmp_path, profile=Profile.PERSONAL) as stand:
        docs = await Docs.make(stand)
        vault = stand.drive.create_folder("Personal Vault", docs.docs.id)
        stand.drive.annotate(vault.id, specialFolder={"name": "vault"})
        inside = stand.drive.create_file("secret.txt", b"secret", vault.id)
        special = stand.drive.create_folder("Documents", docs.docs.id)
        stand.drive.annotate(special.id, specialFolder={"name": "documents"})
        file = stand.drive.create_file("plain.txt", b"plain", special.id)
        await stand.sync()
        said = await stand.coverage(docs.docs)
        assert (said[vault.id], said[inside.id]) == (Reason.VAULT, Reason.VAULT)
        assert file.id in await stand.live()
        assert stand.asked("children") == []
