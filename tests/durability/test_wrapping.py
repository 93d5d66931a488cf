"""The watch over effects tells of each that has no checkpoints, and of no other."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from drivefeed.domain.checkpoints import passing
from durability.wrapping import Watch, wrapped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Put = Callable[[], Awaitable[None]]


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def watch(told: list[str]) -> Watch:
    return Watch(told.append)


@pytest.fixture
def put(watch: Watch) -> Put:
    async def put() -> None:
        """Store something."""

    wrapped_put: Put = wrapped(put, "put", watch)
    return wrapped_put


async def test_an_effect_between_its_checkpoints_is_fine(
    watch: Watch, put: Put, told: list[str]
) -> None:
    for _ in range(2):
        with passing(watch.passes, "transfer.put"):
            await put()
        watch.passes("claim.commit.before")
    watch.rests()
    assert told == []


async def test_an_effect_without_a_checkpoint_before_it_is_told(
    watch: Watch, put: Put, told: list[str]
) -> None:
    watch.passes("claim.commit.after")
    await put()
    assert told == ["put: no checkpoint before it"]


async def test_a_second_effect_needs_checkpoints_of_its_own(
    watch: Watch, put: Put, told: list[str]
) -> None:
    with passing(watch.passes, "transfer.put"):
        await put()
        await put()
    assert "put: no checkpoint after it, before put" in told


async def test_an_effect_that_is_never_told_of_is_found_when_the_work_ends(
    watch: Watch, put: Put, told: list[str]
) -> None:
    watch.passes("transfer.put.before")
    await put()
    watch.rests()
    assert told == ["put: no checkpoint after it, before the end of the work"]


async def test_an_effect_that_failed_has_nothing_to_tell(watch: Watch, told: list[str]) -> None:
    async def put() -> None:
        raise OSError

    with suppress(OSError), passing(watch.passes, "transfer.put"):
        await wrapped(put, "put", watch)()
    watch.rests()
    assert told == []


async def test_an_effect_inside_of_another_belongs_to_it(
    watch: Watch, put: Put, told: list[str]
) -> None:
    async def remove() -> None:
        await put()
        await put()

    with passing(watch.passes, "withdraw.points"):
        await wrapped(remove, "remove", watch)()
    watch.rests()
    assert told == []
