"""Which shelf an organization has, who is told what, and embedders that are lent to many."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from drivefeed.indexer.collection import Collection
from drivefeed.indexer.lending import Lending
from drivefeed.indexer.library import Library
from drivefeed.indexer.providers import EmbeddingChoice, open_embedder
from drivefeed.indexer.shelf import Shelf, Swapped
from support.clock import ManualClock


class Notes:
    """An index and an embedder that only remember what they were told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def set_live(self, *, import_id: str, **_: Any) -> int:
        self.told.append(f"live {import_id}")
        return 1

    async def set_folders(self, *, document_id: str, **_: Any) -> int:
        self.told.append(f"folders {document_id}")
        return 1

    async def remove(self, *, import_id: str, **_: Any) -> int:
        self.told.append(f"remove {import_id}")
        return 1

    async def aclose(self) -> None:
        self.told.append("closed")


class Owners:
    """Whose an import or a document is, is its first letter; nobody knows those with a z."""

    asked = 0

    async def owner_of_import(self, import_id: str) -> str | None:
        self.asked += 1
        return None if import_id.startswith("z") else import_id[0]

    async def owner_of_document(self, document_id: str) -> str | None:
        return await self.owner_of_import(document_id)


def collection(name: str) -> Collection:
    notes = cast(Any, Notes())
    return Collection(name, notes, notes)


def told(one: Collection | None) -> list[str]:
    assert one is not None
    return cast(Notes, one.index).told


def library() -> tuple[Library, Owners]:
    owners = Owners()
    made = Library(Shelf(collection("house")), owners)
    made.add("a", Shelf(collection("own"), house=made.house))
    return made, owners


async def test_what_is_told_goes_to_the_collection_of_whose_it_is() -> None:
    made, _ = library()
    await made.set_live(import_id="a1", round_=1, live=True)
    await made.set_folders(document_id="b1", name="n", folders=())
    await made.remove(import_id="z1", round_=1)
    assert told(made.of("a").current) == ["live a1", "remove z1"]
    assert told(made.of("b").current) == told(made.house.current) == ["folders b1", "remove z1"]


async def test_while_all_are_together_nobody_is_asked_whose_something_is() -> None:
    owners = Owners()
    made = Library(Shelf(collection("house")), owners)
    assert made.of("b").current is made.house.current
    await made.set_live(import_id="b1", round_=1, live=True)
    assert owners.asked == 0
    assert not made.is_divided
    # From the moment on at which one is to move out, its gate has to be passed.
    made.of("b").building = collection("own")
    await made.set_live(import_id="b1", round_=1, live=True)
    assert owners.asked == 1


async def test_a_lodger_tells_all_three_while_both_are_built() -> None:
    made, _ = library()
    made.house.building = collection("house-2")
    lodger = made.of("b")
    lodger.building = collection("own of b")
    await made.remove(import_id="b1", round_=1)
    assert told(lodger.building) == told(made.house.building) == ["remove b1"]
    assert told(made.house.current) == ["remove b1"]
    assert told(made.of("a").current) == []


async def test_a_lodger_moves_out_and_keeps_nobody_else() -> None:
    made, _ = library()
    lodger = made.of("b")
    own = lodger.building = collection("own of b")
    async with lodger.using() as former, lodger.standstill():
        assert former is made.house.current
        # Others write meanwhile; it does not.
        async with asyncio.timeout(5):
            await made.remove(import_id="c1", round_=1)
        late = asyncio.create_task(made.remove(import_id="b1", round_=1))
        await asyncio.sleep(0)
        assert lodger.put_in_use() is None
    async with asyncio.timeout(5):
        await late
        await lodger.vacated()
    assert lodger.current is own
    assert told(own) == ["remove b1"]
    with pytest.raises(Swapped):
        async with lodger.writing(former):
            pass
    async with made.of("c").writing(former):
        pass


async def test_a_swap_waits_for_those_who_read_before_it() -> None:
    made, _ = library()
    lodger = made.of("b")
    lodger.building = collection("own of b")
    async with lodger.using():
        async with lodger.standstill():
            lodger.put_in_use()
        leaving = asyncio.create_task(lodger.vacated())
        await asyncio.sleep(0)
        assert not leaving.done()
    await leaving


async def test_who_returns_does_not_close_what_others_use() -> None:
    made, _ = library()
    returning = made.of("a")
    own = returning.current
    returning.building = made.house.current
    assert (returning.is_returning, made.returning) == (True, ["a"])
    async with returning.standstill():
        assert returning.put_in_use() is own
    assert returning.is_lodger
    assert not returning.leaving
    await returning.aclose()
    assert told(made.house.current) == []


async def test_a_model_is_in_memory_once_however_many_use_it() -> None:
    made: list[EmbeddingChoice] = []

    def make(choice: EmbeddingChoice) -> Any:
        made.append(choice)
        return open_embedder(choice, threads=1, clock=ManualClock())

    lending = Lending(make)
    first, second = (lending.lend(EmbeddingChoice("local")) for _ in range(2))
    remote = lending.lend(EmbeddingChoice("ollama", model="bge-m3", api_key="one"))
    assert len(made) == 2
    assert lending.loaded == 0
    await first.check()
    assert (first.loaded, second.loaded, remote.loaded) == (True, True, False)
    assert lending.loaded == 1
    await first.aclose()
    await first.aclose()
    # Somebody has it still.
    assert len(await second.embed_query("oil for the lamp")) == 384
    await second.aclose()
    assert lending.loaded == 0
    lending.lend(EmbeddingChoice("local"))
    assert len(made) == 3
    # Another key is another embedder.
    lending.lend(EmbeddingChoice("ollama", model="bge-m3", api_key="two"))
    assert len(made) == 4
