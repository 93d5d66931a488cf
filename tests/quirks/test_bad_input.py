"""Answers that nobody should have to read: refused or survived, with a reason and the position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog.tables import items
from drivefeed.domain.reasons import Reason
from graphsim.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable

    from quirks.stand import Docs

    Retell = list[Callable[[dict[str, Any]], dict[str, Any]]]


_DEEP = b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000
_DEEP_LIST = b"[" * 5_000_000 + b"]" * 5_000_000


@pytest.fixture
def bodies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bytes]]:
    """Media types and bodies that answer delta as they are, in turns."""
    waiting: list[tuple[str, bytes]] = []
    original = Exchange.json

    async def json_(self: Exchange, status: int, content: Any, *args: Any, **more: Any) -> None:
        if self.asked.op == "delta" and status == 200 and waiting:
            kind, body = waiting[0]
            await self.respond(200, {"Content-Type": kind}, body)
            return
        await original(self, status, content, *args, **more)

    monkeypatch.setattr(Exchange, "json", json_)
    return waiting


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("application/json", b"{nonsense", "unreadable page"),
        ("application/json", b"", "unreadable page"),
        ("application/json", b"[]", "unreadable page"),
        ("application/json", b'{"value": null}', "unreadable page"),
        ("text/html", b"\r\n<!DOCTYPE html><title>Sign in</title>", "proxy or a sign-in page"),
        ("application/json", _DEEP, "nested deeper|unreadable page"),
        ("application/json", b'{"value":[' + _DEEP + b"]}", "nested deeper|unreadable page"),
        ("application/json", b'{"value":' + _DEEP_LIST + b"}", "nested deeper|unreadable page"),
    ],
    ids=["no json", "nothing", "a list", "no value", "html", "deep", "deep item", "deep list"],
)
async def test_what_is_no_page_is_refused_and_asked_for_again(
    docs: Docs, bodies: list[tuple[str, bytes]], kind: str, body: bytes, words: str
) -> None:
    stand = docs.stand
    cursor = (await stand.row()).cursor
    bodies.append((kind, body))
    stand.drive.delete(docs.b.id)
    await stand.sync()
    await stand.pass_time(300)
    row = await stand.row()
    assert (row.cursor, row.attention) == (cursor, Reason.ATTEMPTS_EXHAUSTED)
    assert any(word in str(row.detail) for word in words.split("|")), row.detail
    assert len(str(row.detail)) < 500
    assert await stand.live() == {docs.a.id, docs.b.id}
    bodies.clear()
    await stand.pass_time(360)
    assert (await stand.row()).attention is None
    assert await stand.live() == {docs.a.id}


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/v1.0/drives/x/root/delta?token=1",
        "//evil.example/delta",
        "http://graph.microsoft.com@evil.example/delta",
        "file:///etc/passwd",
        7,
    ],
)
@pytest.mark.parametrize("name", ["@odata.deltaLink", "@odata.nextLink"])
async def test_a_link_that_leads_elsewhere_is_refused_with_its_page(
    docs: Docs, retell: Retell, name: str, elsewhere: object
) -> None:
    stand = docs.stand
    cursor = (await stand.row()).cursor
    retell.append(lambda page: {"value": page["value"], name: elsewhere})
    stand.drive.delete(docs.b.id)
    await stand.sync()
    row = await stand.row()
    assert (row.cursor, row.attention) == (cursor, Reason.SOURCE_MISBEHAVES)
    assert "link" in str(row.detail)
    assert await stand.live() == {docs.a.id, docs.b.id}
    retell.clear()
    await stand.pass_time(360)
    assert await stand.live() == {docs.a.id}


async def test_items_that_cannot_be_are_passed_over_and_the_others_kept(
    docs: Docs, retell: Retell
) -> None:
    stand = docs.stand
    odd: list[dict[str, Any]] = [
        {
            "id": "X" * 2_000,
            "name": "long.txt",
            "file": {},
            "parentReference": {"id": docs.docs.id},
        },
        {"id": "", "name": "no id.txt", "file": {}},
        {"id": 7, "name": "number.txt", "file": {}},
        {"id": "far", "name": "far.txt", "file": {}, "parentReference": {"id": "Y" * 2_000}},
    ]
    retell.append(lambda page: {**page, "value": odd + page["value"]})
    new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
    await stand.sync()
    assert await stand.live() == {docs.a.id, docs.b.id, new.id}
    assert (await stand.row()).attention is None
    assert max(len(row["item_id"]) for row in await stand.rows(items)) <= 200


async def test_values_that_make_no_sense_count_as_missing(docs: Docs, retell: Retell) -> None:
    stand = docs.stand
    new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
    odd = {
        "size": -5,
        "createdDateTime": "0001-01-01T00:00:00Z",
        "lastModifiedDateTime": "0001-01-01T00:00:00Z",
        "fileSystemInfo": {"lastModifiedDateTime": "0001-01-01T00:00:00Z"},
        "eTag": 12,
        "webUrl": {"nested": True},
    }

    def nonsense(page: dict[str, Any]) -> dict[str, Any]:
        value = [{**one, **odd} if one["id"] == new.id else one for one in page["value"]]
        return {**page, "value": value}

    retell.append(nonsense)
    await stand.sync()
    assert new.id in await stand.live()
    assert (await stand.coverage(docs.docs))[new.id] is None


@pytest.fixture
def retell_items(monkeypatch: pytest.MonkeyPatch) -> Retell:
    """What changes the answers about single items on their way, in turns."""
    changes: Retell = []
    original = Exchange.json

    async def json_(self: Exchange, status: int, content: Any, *args: Any, **more: Any) -> None:
        if self.asked.op == "item" and status == 200:
            for change in changes:
                content = change(content)
        await original(self, status, content, *args, **more)

    monkeypatch.setattr(Exchange, "json", json_)
    return changes


async def test_folders_that_lie_in_each_other_lose_nothing_and_end(
    docs: Docs, retell: Retell, retell_items: Retell
) -> None:
    stand = docs.stand
    deep = stand.drive.create_folder("deep", docs.sub.id)
    file = stand.drive.create_file("deep.txt", b"deep", deep.id)
    await stand.sync()

    def circled(item: dict[str, Any]) -> dict[str, Any]:
        if item["id"] != docs.sub.id:
            return item
        return {**item, "parentReference": {**item["parentReference"], "id": deep.id}}

    retell.append(lambda page: {**page, "value": [circled(one) for one in page["value"]]})
    # What a round leaves unclear is asked for by its id; that answer says the same.
    retell_items.append(circled)
    stand.drive.rename(docs.sub.id, "renamed")
    await stand.sync()
    assert await stand.live() == {docs.a.id, docs.b.id, file.id}, "nothing is proven by a circle"
    retell.clear()
    retell_items.clear()
    stand.drive.rename(docs.sub.id, "sub")
    await stand.sync()
    assert "docs/sub/deep/deep.txt" in await stand.tree()
