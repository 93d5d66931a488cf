"""What SQLAlchemy puts together for a statement, kept from one test's engine to the next one's.

Each test opens a catalog of its own, and putting the same statements together anew was a sixth of
the processor time of the tests of the catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy.ext.asyncio

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine.interfaces import Dialect
    from sqlalchemy.ext.asyncio import AsyncEngine

_CACHE = "_compiled_cache"


def share_statements() -> None:
    """Let all engines that are made from here on share them; called before drivefeed loads."""
    make: Callable[..., AsyncEngine] = sqlalchemy.ext.asyncio.create_async_engine
    kept: dict[str, tuple[Dialect, Any]] = {}

    def sharing(url: Any, **options: Any) -> AsyncEngine:
        made = make(url, **options)
        engine = made.sync_engine
        name = engine.dialect.name
        # A dialect learns at its first connection what its server can do; one may have had none.
        if name not in kept or kept[name][0].server_version_info is None:
            kept[name] = (engine.dialect, getattr(engine, _CACHE))
        # What was put together is found by the dialect, of which each engine would have its own.
        engine.dialect, statements = kept[name]
        setattr(engine, _CACHE, statements)
        return made

    sqlalchemy.ext.asyncio.create_async_engine = sharing
