"""Writers and the swap: none is under way in a standstill, and none is lost."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from drivefeed.indexer.collection import Collection
from drivefeed.indexer.shelf import Shelf, Swapped


class Notes:
    """An index and an embedder that only remember what they were told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def set_live(self, **_: Any) -> int:
        self.told.append("live")
        return len(self.told)

    async def remove(self, **_: Any) -> int:
        self.told.append("remove")
        return len(self.told)

    async def aclose(self) -> None:
        self.told.append("closed")


def collection(name: str) -> Collection:
    notes = cast(Any, Notes())
    return Collection(name, notes, notes)


def told(one: Collection) -> list[str]:
    return cast(Notes, one.index).told


async def test_both_collections_are_told_while_one_is_built() -> None:
    shelf = Shelf(collection("one"))
    await shelf.set_live(import_id="i", round_=1, live=True)
    shelf.building = collection("two")
    await shelf.remove(import_id="i", round_=1)
    assert told(shelf.current) == ["live", "remove"]
    assert told(shelf.building) == ["remove"]


async def test_a_standstill_waits_for_writers_and_keeps_new_ones_out() -> None:
    shelf = Shelf(collection("one"))
    second = shelf.building = collection("two")
    order: list[str] = []
    may_end = asyncio.Event()

    async def writer() -> None:
        async with shelf.writing():
            order.append("writer begins")
            await may_end.wait()
            order.append("writer ends")

    async def swap() -> None:
        async with shelf.standstill():
            order.append("standstill")
            shelf.put_in_use()

    writing = asyncio.create_task(writer())
    await asyncio.sleep(0)
    swapping = asyncio.create_task(swap())
    await asyncio.sleep(0)
    late = asyncio.create_task(shelf.remove(import_id="i", round_=1))
    await asyncio.sleep(0)
    assert order == ["writer begins"]
    may_end.set()
    await asyncio.gather(writing, swapping, late)
    assert order == ["writer begins", "writer ends", "standstill"]
    assert shelf.current is second
    assert told(second) == ["remove"]


async def test_who_held_the_former_collection_is_told_to_begin_again() -> None:
    shelf = Shelf(collection("one"))
    shelf.building = collection("two")
    async with shelf.using() as former:
        async with shelf.standstill():
            assert shelf.put_in_use() is former
        with pytest.raises(Swapped):
            async with shelf.writing(former):
                pass
        leaving = asyncio.create_task(former.unused())
        await asyncio.sleep(0)
        assert not leaving.done()
    await leaving
    # The failed writer is not counted as one that is under way.
    async with asyncio.timeout(5), shelf.standstill():
        pass
