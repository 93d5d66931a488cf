"""The tables. Instants are milliseconds since the epoch in BIGINT; ids are strings."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only in an INTEGER primary key.
_Serial = BigInteger().with_variant(Integer, "sqlite")


def _id(name: str = "id") -> Column[str]:
    return Column(name, String(64), primary_key=True)


def _at(name: str, *, nullable: bool = True) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


def _code(name: str, *, nullable: bool = True) -> Column[str]:
    return Column(name, String(40), nullable=nullable)


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=false())


def _where(sqlite: str, postgres: str | None = None) -> dict[str, Any]:
    """The condition of a partial index. SQLite takes it only if a query says the same words."""
    return {"sqlite_where": text(sqlite), "postgresql_where": text(postgres or sqlite)}


orgs = Table(
    "orgs",
    metadata,
    _id(),
    Column("name", Text, nullable=False),
    Column("pages_used", BigInteger, nullable=False, server_default="0"),
    _at("created_at", nullable=False),
)

accounts = Table(
    "accounts",
    metadata,
    _id(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    Column("name", Text, nullable=False),
    _at("created_at", nullable=False),
    UniqueConstraint("org_id", "name"),
)

drives = Table(
    "drives",
    metadata,
    _id(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    Column("account_id", ForeignKey("accounts.id"), nullable=False),
    Column("drive_key", String(200), nullable=False),
    Column("remote_id", String(200), nullable=False),
    Column("drive_type", String(40), nullable=False),
    Column("name", Text, nullable=False),
    Column("web_url", Text),
    Column("root_item_id", String(200)),
    # The position: the link to follow next. `enumerating` tells whether a full listing is on.
    Column("cursor", Text),
    Column("generation", Integer, nullable=False, server_default="0"),
    _flag("enumerating"),
    _flag("settling"),
    Column("pages_in_round", Integer, nullable=False, server_default="0"),
    Column("interval_ms", BigInteger, nullable=False),
    _at("last_round_at"),
    _code("hold"),
    _code("attention"),
    Column("detail", Text),
    _at("created_at", nullable=False),
    UniqueConstraint("org_id", "drive_key"),
)

items = Table(
    "items",
    metadata,
    Column("drive_id", ForeignKey("drives.id"), primary_key=True),
    Column("item_id", String(200), primary_key=True),
    Column("parent_id", String(200)),
    Column("name", Text, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("size", BigInteger),
    Column("media_type", Text),
    Column("etag", Text),
    Column("quick_xor", String(40)),
    _at("created_at"),
    _at("modified_at"),
    Column("web_url", Text),
    _flag("malware"),
    _flag("deleted"),
    Column("generation", Integer, nullable=False),
    Column("version_key", Text, nullable=False),
    _flag("dirty"),
    Index("ix_items_parent", "drive_id", "parent_id"),
    # SQLAlchemy asks SQLite for "dirty = 1".
    Index("ix_items_dirty", "drive_id", **_where("dirty = 1", "dirty")),
)

connections = Table(
    "connections",
    metadata,
    _id(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    Column("drive_id", ForeignKey("drives.id"), nullable=False),
    Column("root_item_id", String(200), nullable=False),
    Column("name", Text, nullable=False),
    Column("policy", Text, nullable=False),
    _flag("paused"),
    _code("attention"),
    Column("detail", Text),
    # How far the scan of the tree came that decides what this connection admits.
    Column("admit_cursor", String(200)),
    _flag("admitting"),
    _at("created_at", nullable=False),
    UniqueConstraint("org_id", "drive_id", "root_item_id"),
)

documents = Table(
    "documents",
    metadata,
    _id(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    Column("source", String(20), nullable=False),
    Column("drive_id", ForeignKey("drives.id")),
    Column("item_id", String(200)),
    Column("name", Text, nullable=False),
    Column("wanted_import_id", String(64)),
    Column("live_import_id", String(64)),
    Column("live_round", Integer),
    Column("seq", Integer, nullable=False, server_default="0"),
    _code("unwanted_reason"),
    _at("erase_at"),
    _flag("forgotten"),
    _flag("misplaced"),
    # Name and folders as the index knows them; they follow renames and moves without a re-read.
    Column("folders", Text, nullable=False, server_default="[]"),
    _at("created_at", nullable=False),
    Index("ix_documents_item", "drive_id", "item_id", unique=True),
)

coverage = Table(
    "coverage",
    metadata,
    Column("connection_id", ForeignKey("connections.id"), primary_key=True),
    Column("item_id", String(200), primary_key=True),
    Column("document_id", String(64)),
    _flag("admitted"),
    _code("reason"),
    # A removal that settling found and that is not applied yet.
    _code("leaving"),
    Index("ix_coverage_document", "document_id"),
    Index("ix_coverage_leaving", "connection_id", **_where("leaving IS NOT NULL")),
)

imports = Table(
    "imports",
    metadata,
    _id(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    Column("document_id", ForeignKey("documents.id"), nullable=False),
    Column("version_key", Text, nullable=False),
    Column("state", String(20), nullable=False),
    Column("round", Integer, nullable=False, server_default="1"),
    Column("revision", Integer, nullable=False, server_default="1"),
    _code("reason"),
    Column("detail", Text),
    Column("shown", Boolean),
    _code("attention"),
    _code("hold"),
    Column("backend_job", String(200)),
    _at("deadline_at"),
    Column("poll_count", Integer, nullable=False, server_default="0"),
    # The file was renamed or moved after it may have been submitted.
    _flag("misplaced"),
    Column("listed_size", BigInteger),
    Column("quick_xor", String(40)),
    Column("size", BigInteger),
    Column("sha256", String(64)),
    Column("integrity", String(40)),
    Column("same_as", String(64)),
    Column("pages", Integer),
    Column("chunks", Integer),
    _at("modified_at"),
    _at("created_at", nullable=False),
    _at("settled_at"),
    Index("ix_imports_document", "document_id"),
    Index("ix_imports_state", "state"),
)

import_events = Table(
    "import_events",
    metadata,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("import_id", ForeignKey("imports.id"), nullable=False, index=True),
    Column("round", Integer, nullable=False),
    _at("at", nullable=False),
    Column("event", String(40), nullable=False),
    Column("state", String(20), nullable=False),
    _code("reason"),
    Column("detail", Text, nullable=False, server_default=""),
)

reminders = Table(
    "reminders",
    metadata,
    Column("subject_id", String(64), primary_key=True),
    Column("org_id", String(64), nullable=False),
    Column("stage", String(20), nullable=False),
    Column("number", Integer, nullable=False, server_default="1"),
    _at("due_at"),
    _at("sent_at"),
    _at("remind_at"),
    Column("owner", String(64)),
    _at("busy_until"),
    Column("starts", Integer, nullable=False, server_default="0"),
    Column("lane", Integer, nullable=False, server_default="1"),
    # Ids for the payload of the delivery, as JSON.
    Column("payload", Text, nullable=False),
    # What waits to be sent: of each org, its lanes in turn. Rows at rest are in no index.
    Index(
        "ix_reminders_unsent",
        *("stage", "org_id", "lane", "due_at"),
        **_where("sent_at IS NULL AND due_at IS NOT NULL"),
    ),
    Index("ix_reminders_remind", "remind_at", **_where("remind_at IS NOT NULL")),
    Index("ix_reminders_owner", "owner", **_where("owner IS NOT NULL")),
)

ledger = Table(
    "ledger",
    metadata,
    Column("id", _Serial, primary_key=True, autoincrement=True),
    Column("org_id", ForeignKey("orgs.id"), nullable=False, index=True),
    Column("document_id", ForeignKey("documents.id"), nullable=False),
    Column("import_id", String(64), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("pages", Integer, nullable=False),
    _at("at", nullable=False),
    UniqueConstraint("import_id"),
    UniqueConstraint("document_id", "sha256"),
)

index_jobs = Table(
    "index_jobs",
    metadata,
    _id(),
    Column("key", String(80), nullable=False, unique=True),
    Column("import_id", String(64), nullable=False, index=True),
    Column("submission", Text, nullable=False),
    Column("state", String(20), nullable=False),
    Column("progress", Integer, nullable=False, server_default="0"),
    Column("pages", Integer),
    Column("chunks", Integer),
    _code("reason"),
    Column("detail", Text, nullable=False, server_default=""),
    _at("created_at", nullable=False),
)

heartbeats = Table(
    "heartbeats",
    metadata,
    Column("owner", String(64), primary_key=True),
    Column("role", String(40), nullable=False),
    _at("started_at", nullable=False),
    _at("seen_at", nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("term", Integer, nullable=False),
    _at("until", nullable=False),
)

facts = Table(
    "facts",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("value", Text, nullable=False),
)
