"""What a catalog asks of its database, and which kinds there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from drivefeed.domain.errors import DrivefeedError


class Database(Protocol):
    """One kind of database: how its transactions begin, and what its errors mean."""

    engine: AsyncEngine

    def writer(self, *, beside: bool) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a writing transaction, committed at the end of the block."""
        ...

    def reader(self) -> AbstractAsyncContextManager[AsyncConnection]:
        """Open a transaction with one consistent view."""
        ...

    def translated(self, error: SQLAlchemyError, *, writes: bool = True) -> DrivefeedError | None:
        """Return what an error means for the rest of the house, or None for a defect."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


@dataclass(frozen=True, slots=True)
class PostgresLimits:
    """What one process may use of the database.

    Attributes:
        connections: most connections at a time.
        connect_seconds: how long to wait for a connection, new or from the pool.
        statement_seconds: how long one statement may take.
        idle_seconds: how long a transaction may stand still before the database ends it.
        prepared_statements: whether statements stay prepared on a connection. Faster, and wrong
            where a pgbouncer hands every transaction another connection.
    """

    connections: int = 10
    connect_seconds: float = 10.0
    statement_seconds: float = 30.0
    idle_seconds: float = 60.0
    prepared_statements: bool = False


def is_postgres(url: str) -> bool:
    """Whether a database's URL names Postgres."""
    return url.startswith(("postgresql:", "postgres:"))
