from __future__ import annotations

import asyncio

from drivefeed.domain.errors import Part, PartDown
from drivefeed.services.checkups.examination import Examination
from drivefeed.services.checkups.finding import Colour, Finding, green, red, yellow


async def _well() -> list[Finding]:
    return [green("well", "It is.")]


async def test_checks_run_at_the_same_time() -> None:
    both = asyncio.Barrier(2)

    async def look() -> list[Finding]:
        await both.wait()  # one after the other would never get here
        return []

    examination = Examination()
    examination.add("one", look)
    examination.add("two", look)
    assert await examination.run() == []


async def test_a_check_that_does_not_end_is_red_and_the_others_go_on() -> None:
    async def hang() -> list[Finding]:
        await asyncio.Event().wait()
        return []

    examination = Examination()
    examination.add("hangs", hang, seconds=0.01, remedy="Wake it.")
    examination.add("well", _well)
    late, fine = await examination.run()
    assert (late.part, late.colour, late.remedy) == ("hangs", Colour.RED, "Wake it.")
    assert "No answer within" in late.words
    assert fine.colour is Colour.GREEN


async def test_what_a_check_raises_is_told_without_secrets() -> None:
    async def refuse() -> list[Finding]:
        raise PartDown("redis://:s3cret-of-redis@host:1/0 refuses us.", part=Part.QUEUE)

    async def defect() -> list[Finding]:
        raise ZeroDivisionError("token=abcdef0123456789")

    examination = Examination()
    examination.add("part:thing", refuse)
    examination.add("other", defect)
    refused, broken = await examination.run()
    assert (refused.part, refused.subject) == ("part", "thing")
    assert "s3cret" not in refused.words
    assert "ZeroDivisionError" in broken.words
    assert "abcdef" not in broken.words
    assert "support-bundle" in broken.remedy


async def test_what_hangs_on_something_broken_is_grey() -> None:
    asked: list[str] = []

    async def broken() -> list[Finding]:
        return [red("network", "It is broken.", "Repair it.")]

    async def asks() -> list[Finding]:
        asked.append("account")
        return []

    examination = Examination()
    examination.add("network:host", broken)
    examination.add("account:one", asks, needs=["network:host"])
    examination.add("drive:two", asks, needs=["account:one"])
    examination.add("clock", asks, after=["network:host"])
    found = {one.part: one for one in await examination.run()}
    assert asked == ["account"]  # the clock, which only comes after
    assert found["account"].colour is Colour.GREY
    assert found["account"].remedy == "Cure 'network host' first."
    assert found["drive"].colour is Colour.GREY


async def test_yellow_holds_nothing_up_and_checks_may_add_checks() -> None:
    changes: list[tuple[str, ...]] = []
    examination = Examination(lambda names: changes.append(tuple(names)))

    async def first() -> list[Finding]:
        examination.add("second", _well, needs=["first"])
        return [yellow("first", "So so.", "Mend it.")]

    examination.add("first", first)
    assert [one.colour for one in await examination.run()] == [Colour.YELLOW, Colour.GREEN]
    assert changes == [("first",), (), ("second",), ()]
