"""Files that are not what they are listed as, or not given: quirks 57 to 75 of downloads."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog.tables import documents, imports, reminders
from drivefeed.domain.model import Policy
from drivefeed.indexer.extract import detect
from drivefeed.indexer.model import Limits, Rejected
from drivefeed.services.second_try import SecondTry
from graphsim.bodies import SyntheticBody
from quirks.stand import Docs

if TYPE_CHECKING:
    from pathlib import Path

    from graphsim.items import Item
    from quirks.stand import Stand


MINUTE = 60.0


async def version_of(stand: Stand, item: Item) -> dict[str, Any]:
    """The only import of a file."""
    found = [
        row
        for row in await stand.rows(imports)
        if row["document_id"] in await documents_of(stand, item)
    ]
    (row,) = found
    return row


async def documents_of(stand: Stand, item: Item) -> set[str]:
    return {row["id"] for row in await stand.rows(documents, documents.c.item_id == item.id)}


def sent(stand: Stand, item: Item) -> int:
    return sum(one.item == item.id for one in stand.asked("download"))


async def add(
    docs: Docs, name: str, body: bytes | SyntheticBody = b"listed", **facets: Any
) -> Item:
    return docs.stand.drive.create_file(name, body, docs.docs.id, **facets)


@pytest.mark.parametrize("name", ["report.docx", "57.xlsx"])
async def test_57_office_bytes_unlike_the_listing_are_taken_at_the_second_sight(
    docs: Docs, name: str
) -> None:
    stand, file = docs.stand, await add(docs, name)
    stand.sim.faults.add("alter", op="download", item=file.id, extra=" and more", count=-1)
    await stand.sync()
    one = await version_of(stand, file)
    assert (one["state"], one["integrity"]) == ("settled", "server_modified")
    assert one["sha256"] == hashlib.sha256(b"listed and more").hexdigest()
    assert sent(stand, file) == 2


async def test_57_bytes_that_differ_each_time_are_taken_too(docs: Docs) -> None:
    stand, file = docs.stand, await add(docs, "restless.docx")
    stand.sim.faults.add("alter", op="download", item=file.id, extra="new", fresh=True, count=-1)
    await stand.sync()
    one = await version_of(stand, file)
    assert (one["state"], one["integrity"]) == ("settled", "server_modified")
    assert sent(stand, file) == 2


async def test_57_a_transfer_that_went_wrong_in_silence_is_made_once_more(docs: Docs) -> None:
    stand, file = docs.stand, await add(docs, "spoilt.txt")
    stand.sim.faults.add("alter", op="download", item=file.id, extra="noise")
    await stand.sync()
    one = await version_of(stand, file)
    assert (one["state"], one["integrity"]) == ("settled", "verified")
    assert one["sha256"] == hashlib.sha256(b"listed").hexdigest()


async def test_58_a_photo_that_is_smaller_than_listed_is_taken(docs: Docs) -> None:
    stand = docs.stand
    file = await add(docs, "live.html", b"<p>" + b"picture " * 500)
    stand.sim.faults.add("alter", op="download", item=file.id, keep=900, count=-1)
    await stand.sync()
    one = await version_of(stand, file)
    assert (one["size"], one["integrity"]) == (900, "server_modified")


async def test_65_what_is_flagged_as_malware_is_not_fetched(docs: Docs) -> None:
    stand, file = docs.stand, await add(docs, "bad.txt", malware={"description": "Eicar"})
    await stand.sync()
    assert (await stand.coverage(docs.docs))[file.id] == "malware"
    assert not any(one.item == file.id for one in stand.asked("content"))


@pytest.mark.parametrize("op", ["content", "download"])
async def test_65_a_refusal_for_malware_ends_the_version_until_there_is_another(
    docs: Docs, op: str
) -> None:
    stand, file = docs.stand, await add(docs, "bad.txt")
    stand.sim.faults.add(
        "status", op=op, item=file.id, status=403, headers={"X-Virus-Infected": "Eicar"}, count=-1
    )
    await stand.sync()
    one = await version_of(stand, file)
    assert (one["state"], one["reason"]) == ("rejected", "malware")
    before = len([e for e in stand.asked("content") if e.item == file.id])
    await stand.pass_time(30 * MINUTE, step=10 * MINUTE)
    assert len([e for e in stand.asked("content") if e.item == file.id]) == before == 1
    stand.sim.faults.clear()
    stand.drive.replace(file.id, b"clean by now")
    await stand.sync()
    assert file.id in await stand.live()


async def test_66_folders_are_never_fetched(docs: Docs) -> None:
    fetched = {one.item for one in docs.stand.asked("content")}
    assert fetched == {docs.a.id, docs.b.id}


async def test_67_a_file_over_the_limit_is_not_fetched_whatever_its_listing_says(
    stand: Stand,
) -> None:
    docs = await Docs.make(stand, Policy(max_bytes=100_000, brake_floor=10_000, brake_count=9_999))
    large = await add(docs, "large.txt", b"x" * 200_000)
    liar = await add(docs, "liar.txt", SyntheticBody(1, 900_000))
    stand.drive.annotate(liar.id, size=7)
    secret = await add(docs, "secret.txt", SyntheticBody(2, 900_000))
    stand.drive.annotate(secret.id, size=7)
    stand.sim.faults.add("no_length", op="download", item=secret.id, count=-1)
    await stand.sync()
    assert (await stand.coverage(docs.docs))[large.id] == "larger_than_limit"
    assert sent(stand, large) == 0
    for file in (liar, secret):
        one = await version_of(stand, file)
        assert (one["state"], one["reason"]) == ("rejected", "larger_than_limit")
    assert len([path for path in await stand.tree() if path.endswith(("a.txt", "b.txt"))]) == 2


@pytest.mark.parametrize("name", ["plan.docx", "plan.xlsx"])
def test_72_what_rights_management_encrypted_says_so(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_bytes(detect.compound.MAGIC + bytes(1024))
    monkeypatch.setattr(
        detect.compound, "stream_names", lambda _: {"encryptedpackage", "\x06dataspaces"}
    )
    with pytest.raises(Rejected) as refused:
        detect.detect(path, name=name, media_type=None, limits=Limits())
    assert refused.value.reason == "encrypted"


async def test_73_a_file_without_the_right_to_fetch_it_ends_there(docs: Docs) -> None:
    stand, file = docs.stand, await add(docs, "read only.txt")
    stand.sim.faults.add(
        "status", op="content", item=file.id, status=403, code="accessDenied", count=-1
    )
    await stand.sync()
    one = await version_of(stand, file)
    assert (one["state"], one["reason"]) == ("rejected", "download_forbidden")
    await stand.pass_time(30 * MINUTE, step=10 * MINUTE)
    assert sum(one.item == file.id for one in stand.asked("content")) == 1


async def test_73_a_right_that_comes_back_is_noticed_within_a_day_or_two(docs: Docs) -> None:
    stand, file = docs.stand, await add(docs, "read only.txt")
    refused = stand.sim.faults.add(
        "status", op="content", item=file.id, status=403, code="accessDenied", count=-1
    )
    await stand.sync()
    again = SecondTry(stand.catalog, "clerk")

    async def a_day() -> int:
        """Play a day; return how often the file was asked for in it."""
        before = sum(one.item == file.id for one in stand.asked("content"))
        for _ in range(24):
            await stand.pass_time(60 * MINUTE, step=60 * MINUTE)
            await again.tick()
            await stand.work()
        return sum(one.item == file.id for one in stand.asked("content")) - before

    for _ in range(3):
        assert await a_day() == 1
        one = await version_of(stand, file)
        assert (one["state"], one["reason"]) == ("rejected", "download_forbidden")
    stand.sim.faults.clear(refused.id)
    assert await a_day() == 1
    assert file.id in await stand.live()
    assert await a_day() == 0


@pytest.mark.parametrize("op", ["content", "download"])
@pytest.mark.parametrize("code", ["resourceLocked", "accessDenied"])
async def test_74_a_locked_file_waits_and_costs_no_attempt(docs: Docs, op: str, code: str) -> None:
    stand, file = docs.stand, await add(docs, "checked out.txt")
    stand.sim.faults.add("status", op=op, item=file.id, status=423, code=code, count=-1)
    await stand.sync()
    one = await version_of(stand, file)
    assert (one["state"], one["hold"], one["attention"]) == (
        "discovered",
        "locked_at_source",
        None,
    )
    (due,) = await stand.rows(reminders, reminders.c.subject_id == one["id"])
    assert due["due_at"] - stand.clock.now() >= 10 * MINUTE * 1000
    await stand.pass_time(120 * MINUTE, step=5 * MINUTE)
    assert sum(one.item == file.id for one in stand.asked("content")) <= 10
    assert (await version_of(stand, file))["attention"] is None
    stand.sim.faults.clear()
    await stand.pass_time(16 * MINUTE)
    assert file.id in await stand.live()


async def test_75_an_empty_file_is_not_fetched(docs: Docs) -> None:
    stand, file = docs.stand, await add(docs, "empty.txt", b"")
    stand.drive.annotate(file.id, file={"mimeType": "text/plain"})
    await stand.sync()
    assert (await stand.coverage(docs.docs))[file.id] == "empty_file"
    assert sum(one.item == file.id for one in stand.asked("content")) == 0


async def test_a_file_that_was_gone_and_is_restored_as_it_was_is_copied(docs: Docs) -> None:
    stand, file = docs.stand, await add(docs, "bin.txt")
    refused = stand.sim.faults.add("status", op="content", item=file.id, status=500)
    await stand.sync()
    assert refused.hits
    stand.drive.delete(file.id)
    # Nothing tells that it is gone before the copy is tried again, nor that it was.
    lost = stand.sim.faults.add("status", op="delta", status=500, count=-1)
    await stand.pass_time(2 * MINUTE, step=MINUTE)
    one = await version_of(stand, file)
    assert (one["state"], one["reason"]) == ("rejected", "gone_at_source")
    stand.drive.restore(file.id)
    stand.sim.faults.clear(lost.id)
    await stand.pass_time(30 * MINUTE, step=10 * MINUTE)
    await stand.sync()
    assert file.id in await stand.live()
