"""The tables of usage: the ledger, which is only ever appended to, and what is held meanwhile."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    DDL,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
    false,
)

from drivefeed.catalog.columns import instant, metadata, serial_column, where

ledger = Table(
    "ledger",
    metadata,
    serial_column(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    # A charge names what was imported. A correction has none of that, and a reason instead.
    Column("kind", String(12), nullable=False, server_default="charge"),
    Column("document_id", ForeignKey("documents.id")),
    Column("import_id", String(64)),
    Column("sha256", String(64)),
    # Below zero only in corrections.
    Column("pages", Integer, nullable=False),
    # Of the pages, those that were not held for it while the organization had a limit.
    Column("overage", Integer, nullable=False, server_default="0"),
    # Who counts: where the backend keeps the books, an entry is a copy and moves no counter.
    Column("usage_owner", String(12), nullable=False, server_default="drivefeed"),
    # The connection that admitted it then; no foreign key, for it may be gone one day.
    Column("connection_id", String(64)),
    # Of a correction: the entry that was wrong, if it is about one.
    Column("corrects", ForeignKey("ledger.id")),
    Column("reason", Text),
    Column("actor", Text),
    instant("at", nullable=False),
    UniqueConstraint("import_id"),
    UniqueConstraint("document_id", "sha256"),
    Index("ix_ledger_org_id_at", "org_id", "at"),
)

reservations = Table(
    "reservations",
    metadata,
    Column("import_id", ForeignKey("imports.id"), primary_key=True),
    Column("round", Integer, primary_key=True),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    # held, then settled or released. What is held counts against the limit.
    Column("state", String(12), nullable=False),
    Column("pages", Integer, nullable=False),
    # What it asked for: an estimate, or its counted pages.
    Column("wanted", Integer, nullable=False),
    Column("counted", Boolean, nullable=False, server_default=false()),
    instant("at", nullable=False),
    instant("ended_at"),
    Index("ix_reservations_held", "org_id", **where("state = 'held'")),
)

_REFUSAL: Final = "The ledger is only appended to; a correction is an entry of its own."
_SQLITE_GUARD: Final = (
    "CREATE TRIGGER ledger_no_{name} BEFORE {verb} ON ledger "
    f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
)
_POSTGRES_FUNCTION: Final = (
    "CREATE OR REPLACE FUNCTION ledger_is_appended_to() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
)
_POSTGRES_GUARD: Final = (
    "CREATE TRIGGER ledger_no_change BEFORE UPDATE OR DELETE ON ledger "
    "FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_appended_to()"
)
GUARDS: Final = {
    "sqlite": tuple(
        _SQLITE_GUARD.format(name=verb.lower(), verb=verb) for verb in ("UPDATE", "DELETE")
    ),
    "postgresql": (_POSTGRES_FUNCTION, _POSTGRES_GUARD),
}
"""By dialect: what makes the database itself refuse to change an entry."""

for _dialect, _guards in GUARDS.items():
    for _guard in _guards:
        _rule = DDL(_guard).execute_if(dialect=_dialect)  # type: ignore[no-untyped-call]  # SQLAlchemy
        event.listen(ledger, "after_create", _rule)
