"""What all tables share: their names' convention, and the shapes of common columns.

Instants are milliseconds since the epoch in BIGINT; ids are strings.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, String, false, text

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def id_column(name: str = "id") -> Column[str]:
    """Return a primary key of our own making."""
    return Column(name, String(64), primary_key=True)


def serial_column(name: str = "id") -> Column[int]:
    """Return a primary key that the database counts.

    SQLite numbers rows by itself only in an INTEGER primary key.
    """
    serial = BigInteger().with_variant(Integer, "sqlite")
    return Column(name, serial, primary_key=True, autoincrement=True)


def instant(name: str, *, nullable: bool = True) -> Column[int]:
    """Return a column of instants."""
    return Column(name, BigInteger, nullable=nullable)


def code(name: str, *, nullable: bool = True) -> Column[str]:
    """Return a column of reason codes."""
    return Column(name, String(40), nullable=nullable)


def flag(name: str) -> Column[bool]:
    """Return a column that is false unless set."""
    return Column(name, Boolean, nullable=False, server_default=false())


def where(sqlite: str, postgres: str | None = None) -> dict[str, Any]:
    """The condition of a partial index. SQLite takes it only if a query says the same words."""
    return {"sqlite_where": text(sqlite), "postgresql_where": text(postgres or sqlite)}
