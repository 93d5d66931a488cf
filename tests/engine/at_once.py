"""SQLite's statements run where they are awaited, in place of a thread for each connection.

Nothing else wants the event loop while an example runs, and each of its two thousand statements
takes some microseconds; handing each to a thread and back takes ten times as long, and on a busy
machine a hundred times. What SQLite does is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import event

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.ext.asyncio import AsyncEngine


def run_at_once(engine: AsyncEngine) -> None:
    """Have all connections that an engine opens from now on run without their threads."""
    event.listen(engine.sync_engine, "connect", _without_thread)


def _without_thread(connection: Any, _entry: Any) -> None:
    driver = connection.driver_connection

    async def execute(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return call(*args, **options)

    def send(end: Callable[[Any], None]) -> None:
        end(driver._conn)

    driver._execute = execute
    driver._send = send
