"""How words are gathered: few are each followed by a look, a flood by one and by one after it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.subscriptions import note_asked, note_told, watched_drives
from drivefeed.domain.errors import Part, PartDown
from drivefeed.domain.subscription import secret_hash
from drivefeed.web import bell as bell_module
from drivefeed.web.bell import FLOOD, Bell
from support.waiting import until
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from drivefeed.catalog.engine import Catalog

WORD = "the word"


class Ringing:
    """A bell that runs, the subscription it hears of, and each writing."""

    def __init__(self, bell: Bell, subscription_id: str) -> None:
        self.bell = bell
        self.subscription_id = subscription_id
        self.written: list[list[str]] = []
        self.meanwhile: list[Callable[[], Awaitable[object]]] = []
        """What happens during the next writings."""

    async def hear(self, words: int = 1) -> None:
        for _ in range(words):
            assert await self.bell.hear(self.subscription_id, [WORD])

    async def writings(self, count: int) -> None:
        await until(lambda: len(self.written) >= count, what=f"{count} writings")
        assert len(self.written) == count

    async def flood(self) -> None:
        """More words than count as news, again and again without a pause."""
        for _ in range(50):
            await self.hear(FLOOD + 10)
            await asyncio.sleep(0.01)


@pytest.fixture
async def ringing(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ringing]:
    monkeypatch.setattr(bell_module, "_GATHER_SECONDS", 0.02)
    monkeypatch.setattr(bell_module, "_APART_SECONDS", 0.06)
    monkeypatch.setattr(bell_module, "_AGAIN_SECONDS", 0.02)
    rig = await Rig.make(catalog)
    await rig.connect()
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    (drive,) = await watched_drives(catalog)
    one = await note_asked(catalog, drive, secret_hash=secret_hash(WORD))
    made = Ringing(Bell(catalog), one.subscription_id)

    async def counted(where: Catalog, ids: Iterable[str]) -> None:
        if made.meanwhile:
            await made.meanwhile.pop(0)()
        await note_told(where, ids)
        made.written.append(list(ids))

    monkeypatch.setattr(bell_module, "note_told", counted)
    running = asyncio.create_task(made.bell.run())
    yield made
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_each_of_a_few_words_is_written(ringing: Ringing) -> None:
    for count in (1, 2, 3):
        await ringing.hear()
        await ringing.writings(count)


async def test_a_flood_is_written_once(ringing: Ringing) -> None:
    await ringing.flood()
    await ringing.writings(1)


async def test_the_last_words_of_a_flood_are_written_when_it_is_long_enough_ago(
    ringing: Ringing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bell_module, "HOLD_SECONDS", 1.5)
    await ringing.flood()
    before = len(ringing.written)
    await until(lambda: len(ringing.written) > before, what="the last words")


async def test_what_is_heard_while_a_word_is_written_is_another_word(ringing: Ringing) -> None:
    ringing.meanwhile.append(ringing.hear)
    await ringing.hear()
    await ringing.writings(2)


async def test_a_catalog_that_is_down_loses_no_word(ringing: Ringing) -> None:
    async def down() -> None:
        raise PartDown("The catalog is down.", part=Part.CATALOG)

    ringing.meanwhile += [down, down]
    await ringing.hear()
    await ringing.writings(1)
