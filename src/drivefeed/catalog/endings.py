"""What a writing transaction has to do at its end, once everything else of it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy.ext.asyncio import AsyncConnection

    Finish = Callable[[AsyncConnection], Awaitable[None]]

OPTION: Final = "drivefeed_endings"
"""The execution option of :meth:`Catalog.write` that holds them: an empty dict at the beginning."""


def before_commit(connection: AsyncConnection, key: str, finish: Finish) -> None:
    """Have something done right before the commit, and within it.

    Args:
        key: what is asked for several times under one key is done once.
    """
    _endings(connection)[key] = finish


async def finish_all(connection: AsyncConnection) -> None:
    """Do what was asked for, and what that asks for in turn."""
    endings = _endings(connection)
    while endings:
        _, finish = endings.popitem()
        await finish(connection)


def _endings(connection: AsyncConnection) -> dict[str, Finish]:
    assert connection.sync_connection is not None
    found: dict[str, Finish] = connection.sync_connection.get_execution_options()[OPTION]
    return found
