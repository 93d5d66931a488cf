"""The tables of what flows: orgs, drives and their items, documents, imports, reminders."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
    true,
)

from drivefeed.catalog.columns import (
    code,
    flag,
    id_column,
    instant,
    metadata,
    serial_column,
    where,
)

orgs = Table(
    "orgs",
    metadata,
    id_column(),
    Column("name", Text, nullable=False),
    # All pages ever charged, corrections included: the sum of its entries in the ledger.
    Column("pages_used", BigInteger, nullable=False, server_default="0"),
    # How many pages it may use in a period; null where there is no limit.
    Column("page_limit", BigInteger),
    Column("limit_period", String(10), nullable=False, server_default="total"),
    Column("limit_zone", Text, nullable=False, server_default="UTC"),
    instant("period_start"),
    Column("period_used", BigInteger, nullable=False, server_default="0"),
    # What its reservations hold.
    Column("pages_held", BigInteger, nullable=False, server_default="0"),
    # When the scheduler has something to do about its quota: the next period, a line that moves.
    instant("quota_due_at"),
    instant("created_at", nullable=False),
    Index("ix_orgs_quota_due_at", "quota_due_at", **where("quota_due_at IS NOT NULL")),
)

accounts = Table(
    "accounts",
    metadata,
    id_column(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    Column("name", Text, nullable=False),
    # How it signs in. Null only in rows of before there were accounts in the catalog.
    Column("sign_in", String(20)),
    Column("tenant_id", Text),
    Column("client_id", Text),
    Column("cloud", String(20), nullable=False, server_default="global"),
    Column("authority", Text),
    Column("graph_url", Text),
    Column("ca_file", Text),
    # Where the platform keeps a token, for workload identity.
    Column("token_file", Text),
    # Whether the settings own it, its secret too; else its secret is in `credentials`.
    flag("declared"),
    # Who signed in: the name for people, the home account id for the token cache.
    Column("user_name", Text),
    Column("user_id", Text),
    Column("state", String(20), nullable=False, server_default="ok"),
    code("reason"),
    Column("detail", Text),
    # When its secret, certificate or sign-in ends, as far as we know.
    instant("expires_at"),
    Column("revision", Integer, nullable=False, server_default="1"),
    instant("created_at", nullable=False),
    UniqueConstraint("org_id", "name"),
)

drives = Table(
    "drives",
    metadata,
    id_column(),
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
    flag("enumerating"),
    flag("settling"),
    Column("pages_in_round", Integer, nullable=False, server_default="0"),
    # The link with which the round under way began; null where it lists everything.
    Column("round_link", Text),
    # Pages in a row that told nothing new, rounds in a row that were given up for it or for
    # expired links, and since when the same link fails.
    Column("barren_pages", Integer, nullable=False, server_default="0"),
    Column("given_up", Integer, nullable=False, server_default="0"),
    instant("failing_since"),
    Column("interval_ms", BigInteger, nullable=False),
    instant("last_round_at"),
    # When Microsoft told of a change, a look began because one was due, and a change was found.
    instant("told_at"),
    instant("woken_at"),
    instant("changed_at"),
    # How long between looks, as its changes of late suggest; null for `interval_ms`.
    Column("pace_ms", BigInteger),
    code("hold"),
    code("attention"),
    Column("detail", Text),
    instant("created_at", nullable=False),
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
    instant("created_at"),
    instant("modified_at"),
    Column("web_url", Text),
    flag("malware"),
    # Whether it is shown as shared; null where it was listed before we asked for that.
    Column("shared", Boolean),
    # Whether it does not only inherit its folder's permissions; null where nobody asked.
    Column("own_permissions", Boolean),
    flag("deleted"),
    Column("generation", Integer, nullable=False),
    Column("version_key", Text, nullable=False),
    # The id under which it was first known, where the service gave it another one.
    Column("origin_id", String(200)),
    flag("dirty"),
    Index("ix_items_parent", "drive_id", "parent_id"),
    # Lists that people page through are in the order of names, whatever the case.
    Index("ix_items_listed", "drive_id", text("lower(name)"), "item_id"),
    # SQLAlchemy asks SQLite for "dirty = 1".
    Index("ix_items_dirty", "drive_id", **where("dirty = 1", "dirty")),
)

connections = Table(
    "connections",
    metadata,
    id_column(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    Column("drive_id", ForeignKey("drives.id"), nullable=False),
    Column("root_item_id", String(200), nullable=False),
    Column("name", Text, nullable=False),
    Column("policy", Text, nullable=False),
    # How often its drive is asked for changes; null for the pace of the settings.
    Column("interval_ms", BigInteger),
    flag("paused"),
    code("attention"),
    Column("detail", Text),
    # How far the scan of the tree came that decides what this connection admits.
    Column("admit_cursor", String(200)),
    flag("admitting"),
    # What its plan counted when it was applied: the fixed denominator of its progress, as JSON.
    Column("plan", Text),
    # Whether a file declares it; then `connections apply` may change it.
    flag("declared"),
    # Whether it is paused because its file did not declare it any more: declared again, it resumes.
    flag("pruned"),
    # How it was named by whoever connected it.
    Column("url", Text),
    instant("created_at", nullable=False),
    UniqueConstraint("org_id", "drive_id", "root_item_id"),
)

documents = Table(
    "documents",
    metadata,
    id_column(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    Column("source", String(20), nullable=False),
    Column("drive_id", ForeignKey("drives.id")),
    Column("item_id", String(200)),
    Column("name", Text, nullable=False),
    Column("wanted_import_id", String(64)),
    Column("live_import_id", String(64)),
    Column("live_round", Integer),
    Column("seq", Integer, nullable=False, server_default="0"),
    code("unwanted_reason"),
    instant("erase_at"),
    flag("forgotten"),
    flag("misplaced"),
    # Name and folders as the index knows them; they follow renames and moves without a re-read.
    Column("folders", Text, nullable=False, server_default="[]"),
    instant("created_at", nullable=False),
    Index("ix_documents_item", "drive_id", "item_id", unique=True),
)

coverage = Table(
    "coverage",
    metadata,
    Column("connection_id", ForeignKey("connections.id"), primary_key=True),
    Column("item_id", String(200), primary_key=True),
    Column("document_id", String(64)),
    flag("admitted"),
    code("reason"),
    # A removal that settling found and that is not applied yet.
    code("leaving"),
    Index("ix_coverage_document", "document_id"),
    Index("ix_coverage_leaving", "connection_id", **where("leaving IS NOT NULL")),
)

UNINDEXED = (
    "state IN ('stored', 'submitted') AND attention IS NULL "
    "AND (hold IS NULL OR hold NOT IN ('quota', 'paused'))"
)
"""Imports that are stored and on their way into the index; a condition of SQL."""

imports = Table(
    "imports",
    metadata,
    id_column(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    Column("document_id", ForeignKey("documents.id"), nullable=False),
    Column("version_key", Text, nullable=False),
    Column("state", String(20), nullable=False),
    Column("round", Integer, nullable=False, server_default="1"),
    Column("revision", Integer, nullable=False, server_default="1"),
    code("reason"),
    Column("detail", Text),
    Column("shown", Boolean),
    code("attention"),
    code("hold"),
    # Where it was submitted; null before that, and for what is older than the column.
    Column("backend", String(40)),
    Column("backend_job", String(200)),
    instant("deadline_at"),
    Column("poll_count", Integer, nullable=False, server_default="0"),
    # The file was renamed or moved after it may have been submitted.
    flag("misplaced"),
    Column("listed_size", BigInteger),
    Column("quick_xor", String(40)),
    Column("size", BigInteger),
    Column("sha256", String(64)),
    Column("integrity", String(40)),
    Column("same_as", String(64)),
    Column("pages", Integer),
    Column("chunks", Integer),
    instant("modified_at"),
    instant("created_at", nullable=False),
    instant("settled_at"),
    Index("ix_imports_document", "document_id"),
    Index("ix_imports_state", "state"),
    Index("ix_imports_unindexed", "state", "org_id", "size", **where(UNINDEXED)),
    Index("ix_imports_attention", "attention", **where("attention IS NOT NULL")),
    # The line of those that wait for pages, its head first.
    Index("ix_imports_in_line", "org_id", "created_at", "id", **where("hold = 'quota'")),
)

import_events = Table(
    "import_events",
    metadata,
    serial_column(),
    Column("import_id", ForeignKey("imports.id"), nullable=False, index=True),
    Column("round", Integer, nullable=False),
    instant("at", nullable=False),
    Column("event", String(40), nullable=False),
    Column("state", String(20), nullable=False),
    code("reason"),
    Column("detail", Text, nullable=False, server_default=""),
    # What the backend counted, where it settled: the ledger can be made anew from this.
    Column("pages", Integer),
)

reminders = Table(
    "reminders",
    metadata,
    Column("subject_id", String(64), primary_key=True),
    Column("org_id", String(64), nullable=False),
    Column("stage", String(20), nullable=False),
    Column("number", Integer, nullable=False, server_default="1"),
    instant("due_at"),
    instant("sent_at"),
    instant("remind_at"),
    Column("owner", String(64)),
    instant("busy_until"),
    Column("starts", Integer, nullable=False, server_default="0"),
    Column("lane", Integer, nullable=False, server_default="1"),
    # Ids for the payload of the delivery, as JSON.
    Column("payload", Text, nullable=False),
    # What waits to be sent: of each org, its lanes in turn. Rows at rest are in no index.
    Index(
        "ix_reminders_unsent",
        *("stage", "org_id", "lane", "due_at"),
        **where("sent_at IS NULL AND due_at IS NOT NULL"),
    ),
    # What is in the queue, and whose.
    Index("ix_reminders_sent", "stage", "org_id", **where("sent_at IS NOT NULL")),
    Index("ix_reminders_remind", "remind_at", **where("remind_at IS NOT NULL")),
    Index("ix_reminders_owner", "owner", **where("owner IS NOT NULL")),
)

index_jobs = Table(
    "index_jobs",
    metadata,
    id_column(),
    Column("key", String(80), nullable=False, unique=True),
    Column("import_id", String(64), nullable=False, index=True),
    Column("document_id", String(64), index=True),
    Column("seq", BigInteger),
    Column("submission", Text, nullable=False),
    Column("state", String(20), nullable=False),
    Column("shown", Boolean, nullable=False, server_default=true()),
    Column("read_at_start", Integer, nullable=False, server_default="0"),
    Column("progress", Integer, nullable=False, server_default="0"),
    Column("pages", Integer),
    Column("chunks", Integer),
    code("reason"),
    Column("detail", Text, nullable=False, server_default=""),
    instant("created_at", nullable=False),
)

# What a reindex has built so far in the collection beside the one in use.
reindexed = Table(
    "reindexed",
    metadata,
    Column("collection", String(120), primary_key=True),
    Column("import_id", String(64), primary_key=True),
    Column("round", Integer, primary_key=True),
    # Null where the file could not be read again; then the reason says why.
    Column("chunks", Integer),
    code("reason"),
    Column("detail", Text, nullable=False, server_default=""),
)

heartbeats = Table(
    "heartbeats",
    metadata,
    Column("owner", String(64), primary_key=True),
    Column("role", String(40), nullable=False),
    instant("started_at", nullable=False),
    instant("seen_at", nullable=False),
)

leases = Table(
    "leases",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("term", Integer, nullable=False),
    instant("until", nullable=False),
)

facts = Table(
    "facts",
    metadata,
    Column("name", String(80), primary_key=True),
    Column("value", Text, nullable=False),
)
