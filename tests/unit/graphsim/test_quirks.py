from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from graphsim.clock import ManualClock
from graphsim.drives import MemoryDrive
from graphsim.items import Profile
from graphsim.seals import Seals
from unit.graphsim.kit import Desk, desk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def here() -> AsyncIterator[Desk]:
    async with desk(page_size=50) as made:
        yield made


@pytest.fixture
async def personal() -> AsyncIterator[Desk]:
    async with desk(Profile.PERSONAL, page_size=50) as made:
        yield made


async def test_delta_shows_a_change_later_than_the_item_does(here: Desk) -> None:
    file = here.drive.create_file("a.txt", b"one")
    gone = here.drive.create_file("gone.txt", b"")
    here.clock.advance(100)
    here.drive.quirks.delay = 30
    assert await here.names() == ["root", "a.txt", "gone.txt"]
    link = await here.latest()
    here.drive.rename(file.id, "b.txt")
    here.drive.delete(gone.id)
    new = here.drive.create_file("new.txt", b"")
    assert (await here.json(f"items/{file.id}"))["name"] == "b.txt"
    assert await here.names() == ["root", "a.txt", "gone.txt"]
    pages = await here.round(link)
    assert pages[0]["value"] == []
    here.clock.advance(31)
    late = await here.names(pages[0]["@odata.deltaLink"])
    assert late == ["root", "b.txt", "new.txt", gone.id]
    assert await here.names() == ["root", "b.txt", "new.txt"]
    assert new.id


async def test_a_poll_within_the_delay_may_lose_the_change(here: Desk) -> None:
    file = here.drive.create_file("a.txt", b"one")
    here.clock.advance(100)
    here.drive.quirks.delay, here.drive.quirks.delay_loses = 30, True
    link = await here.latest()
    here.drive.delete(file.id)
    pages = await here.round(link)
    here.clock.advance(100)
    assert await here.items(pages[-1]["@odata.deltaLink"]) == []
    assert await here.names() == ["root"]


async def test_one_change_alone_may_be_late(here: Desk) -> None:
    link = await here.latest()
    late, soon = here.drive.create_file("late.txt", b""), here.drive.create_file("soon.txt", b"")
    here.drive.hide(late.id, 60)
    pages = await here.round(link)
    assert [one["name"] for one in pages[0]["value"]] == ["root", "soon.txt"]
    here.clock.advance(61)
    assert "late.txt" in await here.names(pages[0]["@odata.deltaLink"])
    assert soon.id


async def test_a_hash_that_appears_after_a_download(here: Desk) -> None:
    file = here.drive.create_file("a.txt", b"one")
    here.drive.quirks.hashes = "after_download"
    before = (await here.items())[1]
    link = await here.latest()
    assert before["file"]["hashes"] == {}
    url = (await here.json(f"items/{file.id}"))["@microsoft.graph.downloadUrl"]
    here.client.headers.pop("authorization")
    assert (await here.client.get(url)).content == b"one"
    here.client.headers["authorization"] = f"Bearer {_token(here)}"
    after = (await here.items(link))[1]
    assert after["file"]["hashes"].keys() == {"quickXorHash"}
    assert after["eTag"] == before["eTag"]
    here.drive.quirks.hashes = "absent"
    assert "hashes" not in (await here.items())[1]["file"]


def _token(here: Desk) -> str:
    directory = here.app.entra.directory
    tokens = here.app.entra.grants.tokens
    return tokens.make(directory.app, directory.tenant_id, None, directory.app.roles)


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ("id_only", {"id", "deleted"}),
        ("removed", {"id", "size", "@removed", "parentReference", "lastModifiedDateTime", "file"}),
    ],
)
async def test_tombstones_of_other_shapes(here: Desk, form: str, fields: set[str]) -> None:
    link = await here.latest()
    here.drive.delete(here.drive.create_file("a.txt", b"").id)
    here.drive.quirks.tombstone_fields = form  # type: ignore[assignment]
    assert (await here.items(link))[-1].keys() == fields
    here.drive.quirks.tombstone_fields = "year_one"
    assert (await here.items(link))[-1]["createdDateTime"] == "0001-01-01T00:00:00Z"


async def test_delta_of_a_new_folder_may_be_refused_for_a_while(here: Desk) -> None:
    folder = here.drive.create_folder("new")
    here.drive.quirks.scoped_delta = "not_found_yet"
    assert (await here.get(f"items/{folder.id}/delta")).status_code == 404
    here.clock.advance(61)
    assert (await here.get(f"items/{folder.id}/delta")).status_code == 200


async def test_restored_under_the_same_and_under_new_ids(here: Desk) -> None:
    folder = here.drive.create_folder("folder")
    file = here.drive.create_file("a.txt", b"one", folder.id)
    here.drive.delete(folder.id)
    link = await here.latest()
    here.drive.restore(folder.id)
    assert [one["id"] for one in await here.items(link)][1:] == [folder.id, file.id]
    here.drive.delete(folder.id)
    here.drive.quirks.restore = "new"
    again = here.drive.restore(folder.id)
    assert again.id != folder.id
    shown = {one.get("name"): one["id"] for one in await here.items(link) if "deleted" not in one}
    assert shown.keys() == {"root", "folder", "a.txt"}
    assert shown["a.txt"] != file.id
    url = (await here.get(f"items/{shown['a.txt']}/content")).headers["location"]
    here.client.headers.pop("authorization")
    assert (await here.client.get(url)).content == b"one"


async def test_a_notebook_is_neither_file_nor_folder(here: Desk) -> None:
    here.drive.create_notebook("Notes", sections=("One",))
    shown = {one["name"]: one for one in await here.items()}
    assert shown["Notes"]["package"] == {"type": "oneNote"}
    assert shown["Notes"].keys().isdisjoint({"file", "folder"})
    assert shown["One.one"]["file"]["hashes"] == {}
    assert "Open Notebook.onetoc2" in shown


async def test_items_of_kinds_that_few_clients_know(here: Desk) -> None:
    here.drive.create_other("album", bundle={"childCount": 2})
    here.drive.create_other("riddle", whatIsThis={})
    here.drive.create_file(
        "new.docx",
        b"x",
        pendingOperations={"pendingContentUpdate": {}},
        malware={"description": "x"},
    )
    here.drive.create_file("long", b"", identifier="A" * 2000)
    shown = {one["name"]: one for one in await here.items()}
    assert shown["album"]["bundle"] == {"childCount": 2}
    assert shown["riddle"].keys().isdisjoint({"file", "folder", "bundle"})
    assert {"pendingOperations", "malware"} <= shown["new.docx"].keys()
    assert (await here.json(f"items/{'A' * 2000}"))["name"] == "long"


async def test_a_shortcut_needs_to_be_asked_for_on_personal_drives(
    personal: Desk, here: Desk
) -> None:
    for where in (personal, here):
        elsewhere = MemoryDrive("other", where.drive.profile, Seals(b"x"), ManualClock())
        where.drive.create_shortcut("link", elsewhere, elsewhere.create_folder("shared"))
    assert await personal.names() == ["root"]
    prefer = {"prefer": "Include-Feature=AddToOneDrive"}
    shown = (await personal.json("root/delta", **prefer))["value"]
    assert shown[1]["remoteItem"]["parentReference"]["driveId"] != personal.drive.id
    assert await here.names() == ["root", "link"]


async def test_a_vault_cannot_be_listed(personal: Desk) -> None:
    vault = personal.drive.create_vault()
    answer = await personal.get(f"items/{vault.id}/children")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "invalidRequest")
    assert error["innerError"]["code"] == "invalidResourceId"


async def test_personal_fields(personal: Desk) -> None:
    folder = personal.drive.create_folder("a b")
    personal.drive.create_file("x.txt", b"abc", folder.id)
    shown = (await personal.items())[-1]
    assert shown["parentReference"]["path"] == f"/drives/{personal.drive.id}/root:/a%20b"
    assert shown["file"]["hashes"].keys() == {"quickXorHash", "sha1Hash", "sha256Hash"}
    assert shown["file"]["hashes"]["sha1Hash"] == "A9993E364706816ABA3E25717850C26C9CD0D89D"
    assert "cTag" in shown
    link = await personal.latest()
    personal.drive.delete(shown["id"])
    gone = (await personal.items(link))[-1]
    assert gone["name"] == "x.txt"
    assert gone.keys().isdisjoint({"cTag", "size"})


async def test_a_personal_drive_id_is_spelled_in_several_ways() -> None:
    clock = ManualClock()
    own = MemoryDrive(
        "memory", Profile.PERSONAL, Seals(b"secret"), clock, identifier="0abcdef012345678"
    )
    async with desk(Profile.PERSONAL, drive=own) as here:
        own.create_file("x.txt", b"")
        spelled = []
        for form in ("plain", "upper", "mixed", "short"):
            own.quirks.drive_id_form = form  # type: ignore[assignment]
            one = (await here.items())[-1]["parentReference"]["driveId"]
            spelled.append(one)
            url = f"http://graph.test/v1.0/drives/{one}/root"
            assert (await here.get(url)).status_code == 200
        assert spelled == [
            "0abcdef012345678", "0ABCDEF012345678", "0ABCDEF012345678", "abcdef012345678",
        ]  # fmt: skip


async def test_the_root_may_get_another_id(personal: Desk) -> None:
    file = personal.drive.create_file("x.txt", b"")
    old, link = personal.drive.tree.root_id, await personal.latest()
    new = personal.drive.migrate()
    assert new != old
    assert (await personal.get(link)).status_code == 410
    root, shown = await personal.items()
    assert (root["id"], shown["id"]) == (new, file.id)
    assert shown["parentReference"]["id"] == new
    assert (await personal.json("root"))["id"] == new
    assert (await personal.get(f"items/{old}")).status_code == 404
