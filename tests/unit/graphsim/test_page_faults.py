from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unit.graphsim.kit import Desk, desk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def here() -> AsyncIterator[Desk]:
    async with desk() as made:
        folder = made.drive.create_folder("folder")
        for number in range(4):
            made.drive.create_file(f"{number}.txt", b"x" * number, folder.id)
        yield made


ALL = ["root", "folder", "0.txt", "1.txt", "2.txt", "3.txt"]


async def test_an_empty_page_before_between_and_after_the_data(here: Desk) -> None:
    here.fault("empty_page", op="delta", page=1)
    here.fault("empty_page", op="delta", page=2, count=2)
    here.fault("late_end", op="delta", number=2)
    pages = await here.round()
    assert [len(page["value"]) for page in pages] == [0, 3, 0, 0, 3, 0, 0]
    assert [len(page.keys() & {"@odata.nextLink", "@odata.deltaLink"}) for page in pages] == [1] * 7
    link = pages[-1]["@odata.deltaLink"]
    here.drive.create_file("new.txt", b"")
    assert await here.names(link) == ["root", "new.txt"]


async def test_the_latest_link_may_come_on_a_second_page(here: Desk) -> None:
    here.fault("late_end", url="token=latest")
    first, second = await here.round("root/delta?token=latest")
    assert (first["value"], second["value"]) == ([], [])
    assert await here.items(second["@odata.deltaLink"]) == []


async def test_a_loop_with_a_new_token_each_time(here: Desk) -> None:
    here.fault("loop", op="delta", fresh=True, count=3, skip=1)
    url, links, names = "root/delta", [], []
    for _ in range(5):
        page = await here.json(url)
        names.append([one["name"] for one in page["value"]])
        url = page.get("@odata.nextLink", "")
        links.append(url)
    assert names == [ALL[:3], *[ALL[3:]] * 4]
    tokens = {link.rpartition("token=")[2] for link in links[:4]}
    assert len(tokens) == 4


async def test_a_refusal_in_the_middle_of_an_enumeration(here: Desk) -> None:
    here.fault("status", op="delta", page=2, status=503, count=2)
    first = await here.json("root/delta")
    statuses = [(await here.get(first["@odata.nextLink"])).status_code for _ in range(3)]
    assert statuses == [503, 503, 200]


async def test_links_that_lead_nowhere_good(here: Desk) -> None:
    here.fault("foreign_link", op="delta", host="elsewhere.invalid:444")
    page = await here.json("root/delta")
    assert page["@odata.nextLink"].startswith(
        f"http://elsewhere.invalid:444/v1.0/drives/{here.drive.id}"
    )
    here.fault("foreign_link", op="children")
    page = await here.json("root:/folder:/children")
    assert "graph.attacker.invalid" in page["@odata.nextLink"]
    here.fault("no_link", op="delta")
    assert (await here.json("root/delta")).keys() == {"@odata.context", "value"}
    here.fault("both_links", op="delta")
    assert {"@odata.nextLink", "@odata.deltaLink"} <= (await here.json("root/delta")).keys()


@pytest.mark.parametrize("form", ["query", "function", "root_function", "odd"])
async def test_links_of_every_form_lead_on(here: Desk, form: str) -> None:
    here.drive.quirks.link_form = form  # type: ignore[assignment]
    pages = await here.round("root/delta?$select=name")
    assert [one["name"] for page in pages for one in page["value"]] == ALL
    mark = {"query": "&token=", "odd": "delta?(token='", "root_function": "root/delta(token='"}
    assert mark.get(form, "/microsoft.graph.delta(token='") in pages[0]["@odata.nextLink"]
    here.drive.create_file("new.txt", b"")
    assert await here.names(pages[-1]["@odata.deltaLink"]) == ["root", "new.txt"]


async def test_pages_of_any_size_whatever_top_says(here: Desk) -> None:
    here.fault("page_size", op="delta", least=0, most=2, count=-1)
    pages = await here.round("root/delta?$top=3")
    sizes = [len(page["value"]) for page in pages]
    assert sum(sizes) == 6
    assert max(sizes) <= 2
    assert len(set(sizes)) > 1
    here.app.faults.clear()
    here.drive.quirks.ignore_top = True
    here.drive.quirks.page_size = 5
    assert [len(page["value"]) for page in await here.round("root/delta?$top=1")] == [5, 1]


async def test_children_that_change_places_at_the_end_of_a_page(here: Desk) -> None:
    here.fault("swap", op="children")
    names = await here.names("root:/folder:/children")
    assert names == ["0.txt", "1.txt", "3.txt", "3.txt"]


async def test_values_that_cannot_be(here: Desk) -> None:
    values = {"size": -5, "lastModifiedDateTime": "0001-01-01T00:00:00Z", "odd.facet": 1}
    here.fault("set_fields", op="delta", page=1, values=values, only=["folder"])
    shown = {one["name"]: one for one in await here.items()}
    assert shown["folder"]["size"] == -5
    assert shown["folder"]["odd"] == {"facet": 1}
    assert shown["0.txt"]["size"] == 0
    here.fault("drop_fields", op="delta", fields=["file.hashes.quickXorHash", "size"], count=-1)
    shown = {one["name"]: one for one in await here.items()}
    assert shown["1.txt"]["file"] == {"mimeType": "text/plain", "hashes": {}}
    assert "size" not in shown["1.txt"]


async def test_tags_that_are_others_each_time(here: Desk) -> None:
    here.fault("churn", op="delta", count=2)
    seen = [(await here.json("root/delta"))["value"][2] for _ in range(3)]
    assert len({one["eTag"] for one in seen}) == 3
    assert len({one["file"]["hashes"]["quickXorHash"] for one in seen}) == 1


async def test_folders_that_are_each_others_parent(here: Desk) -> None:
    other = here.drive.create_folder("other")
    here.fault("cycle", op="delta")
    here.drive.quirks.page_size = 10
    shown = {one["name"]: one for one in await here.items()}
    assert shown["folder"]["parentReference"]["id"] == other.id
    assert shown["other"]["parentReference"]["id"] == shown["folder"]["id"]


async def test_a_round_in_another_order(here: Desk) -> None:
    here.fault("children_first", op="delta")
    assert await here.names() == ALL[::-1]
    here.fault("shuffle_round", op="delta")
    names = await here.names()
    assert names != ALL
    assert sorted(names) == sorted(ALL)
    here.fault("omit_root", op="delta")
    assert await here.names() == ALL[1:]
    link = await here.latest()
    here.drive.create_file(
        "deep.txt", b"", here.drive.tree.child(here.drive.tree.root_id, "folder").id
    )  # type: ignore[union-attr]
    here.fault("omit_parents", op="delta")
    assert await here.names(link) == ["deep.txt"]


async def test_a_parent_that_changed_itself_is_not_left_out(here: Desk) -> None:
    folder = here.drive.tree.child(here.drive.tree.root_id, "folder")
    assert folder
    link = await here.latest()
    here.drive.create_file("deep.txt", b"", folder.id)
    here.drive.rename(folder.id, "renamed")
    here.fault("omit_parents", op="delta")
    assert await here.names(link) == ["renamed", "deep.txt"]
    here.fault("omit_parents", op="delta")
    assert "renamed" not in await here.names(), "a crawl shows no parents: they are asked for"


async def test_items_that_come_twice_in_a_round(here: Desk) -> None:
    link = await here.latest()
    file = here.drive.tree.resolve(here.drive.tree.root, ["folder", "0.txt"])
    gone = here.drive.tree.resolve(here.drive.tree.root, ["folder", "1.txt"])
    assert file
    assert gone
    here.drive.rename(file.id, "renamed.txt")
    here.drive.delete(gone.id)
    here.fault("stale_first", op="delta")
    shown = [(one["id"], one.get("name"), "deleted" in one) for one in await here.items(link)]
    assert shown.index((file.id, "0.txt", False)) < shown.index((file.id, "renamed.txt", False))
    assert shown.index((gone.id, "1.txt", False)) < shown.index((gone.id, None, True))
    here.fault("repeat", op="delta")
    assert await here.names() == [*(names := await here.names()), *names]


async def test_a_crawl_that_shows_what_happens_meanwhile(here: Desk) -> None:
    first = await here.json("root/delta")
    new = here.drive.create_file("new.txt", b"")
    here.fault("moving", op="delta")
    last = await here.json(first["@odata.nextLink"])
    assert last["value"][-1]["id"] == new.id
    assert await here.names(last["@odata.deltaLink"]) == ["root", "new.txt"]


async def test_tombstones_that_are_never_reported(here: Desk) -> None:
    link = await here.latest()
    for number in range(4):
        item = here.drive.tree.resolve(here.drive.tree.root, ["folder", f"{number}.txt"])
        assert item
        here.drive.delete(item.id)
    here.app.faults.seed = 3
    here.fault("lose_tombstones", op="delta", share=0.5)
    pages = await here.round(link)
    kept = [one["id"] for page in pages for one in page["value"] if "deleted" in one]
    assert 0 < len(kept) < 4
    assert await here.items(pages[-1]["@odata.deltaLink"]) == []


async def test_answers_that_are_no_json(here: Desk) -> None:
    for kind in ("html", "not_json", "nested_json"):
        here.fault(kind, op="delta", **({"size": 1000} if kind == "nested_json" else {}))
    page, half, deep = [await here.get("root/delta") for _ in range(3)]
    assert page.status_code == half.status_code == deep.status_code == 200
    assert "Sign in" in page.text
    assert page.headers["content-type"].startswith("text/html")
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        half.json()
    assert len(deep.content) == 1000
    assert deep.content.startswith(b'{"value":[[[')


async def test_gone_under_any_code(here: Desk) -> None:
    here.fault("gone", op="delta", code="SyncStateNotFound", location=False)
    answer = await here.get("root/delta")
    assert (answer.status_code, answer.json()["error"]["code"]) == (410, "SyncStateNotFound")
