"""The first tables.

Instants are milliseconds since the epoch. What each table is for is told in
``drivefeed.catalog.tables``; a test proves that both say the same.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# SQLite numbers rows by itself only in an INTEGER primary key.
_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _where(sqlite: str, postgres: str | None = None) -> dict[str, Any]:
    return {"sqlite_where": sa.text(sqlite), "postgresql_where": sa.text(postgres or sqlite)}


def upgrade() -> None:
    """Make all tables, in the order in which they refer to each other."""
    op.create_table(
        "facts",
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_facts"),
    )
    op.create_table(
        "heartbeats",
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("role", sa.String(40), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_heartbeats"),
    )
    op.create_table(
        "index_jobs",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("key", sa.String(80), nullable=False),
        sa.Column("import_id", sa.String(64), nullable=False),
        sa.Column("submission", sa.Text(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("progress", sa.Integer(), server_default="0", nullable=False),
        sa.Column("pages", sa.Integer()),
        sa.Column("chunks", sa.Integer()),
        sa.Column("reason", sa.String(40)),
        sa.Column("detail", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_index_jobs"),
        sa.UniqueConstraint("key", name="uq_index_jobs_key"),
    )
    op.create_index("ix_index_jobs_import_id", "index_jobs", ["import_id"])
    op.create_table(
        "leases",
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("term", sa.Integer(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
    )
    op.create_table(
        "orgs",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("pages_used", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_orgs"),
    )
    op.create_table(
        "reminders",
        sa.Column("subject_id", sa.String(64), nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("stage", sa.String(20), nullable=False),
        sa.Column("number", sa.Integer(), server_default="1", nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        sa.Column("sent_at", sa.BigInteger()),
        sa.Column("remind_at", sa.BigInteger()),
        sa.Column("owner", sa.String(64)),
        sa.Column("busy_until", sa.BigInteger()),
        sa.Column("starts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lane", sa.Integer(), server_default="1", nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("subject_id", name="pk_reminders"),
    )
    op.create_index(
        "ix_reminders_unsent",
        "reminders",
        ["stage", "org_id", "lane", "due_at"],
        **_where("sent_at IS NULL AND due_at IS NOT NULL"),
    )
    op.create_index(
        "ix_reminders_remind", "reminders", ["remind_at"], **_where("remind_at IS NOT NULL")
    )
    op.create_index("ix_reminders_owner", "reminders", ["owner"], **_where("owner IS NOT NULL"))
    op.create_table(
        "accounts",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_accounts_org_id"),
        sa.PrimaryKeyConstraint("id", name="pk_accounts"),
        sa.UniqueConstraint("org_id", "name", name="uq_accounts_org_id_name"),
    )
    op.create_table(
        "drives",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(64), nullable=False),
        sa.Column("drive_key", sa.String(200), nullable=False),
        sa.Column("remote_id", sa.String(200), nullable=False),
        sa.Column("drive_type", sa.String(40), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("web_url", sa.Text()),
        sa.Column("root_item_id", sa.String(200)),
        sa.Column("cursor", sa.Text()),
        sa.Column("generation", sa.Integer(), server_default="0", nullable=False),
        sa.Column("enumerating", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("settling", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("pages_in_round", sa.Integer(), server_default="0", nullable=False),
        sa.Column("interval_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_round_at", sa.BigInteger()),
        sa.Column("hold", sa.String(40)),
        sa.Column("attention", sa.String(40)),
        sa.Column("detail", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_drives_account_id"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_drives_org_id"),
        sa.PrimaryKeyConstraint("id", name="pk_drives"),
        sa.UniqueConstraint("org_id", "drive_key", name="uq_drives_org_id_drive_key"),
    )
    op.create_table(
        "connections",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("drive_id", sa.String(64), nullable=False),
        sa.Column("root_item_id", sa.String(200), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("policy", sa.Text(), nullable=False),
        sa.Column("paused", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("attention", sa.String(40)),
        sa.Column("detail", sa.Text()),
        sa.Column("admit_cursor", sa.String(200)),
        sa.Column("admitting", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["drive_id"], ["drives.id"], name="fk_connections_drive_id"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_connections_org_id"),
        sa.PrimaryKeyConstraint("id", name="pk_connections"),
        sa.UniqueConstraint(
            "org_id", "drive_id", "root_item_id", name="uq_connections_org_id_drive_id_root_item_id"
        ),
    )
    op.create_table(
        "documents",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("source", sa.String(20), nullable=False),
        sa.Column("drive_id", sa.String(64)),
        sa.Column("item_id", sa.String(200)),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("wanted_import_id", sa.String(64)),
        sa.Column("live_import_id", sa.String(64)),
        sa.Column("live_round", sa.Integer()),
        sa.Column("seq", sa.Integer(), server_default="0", nullable=False),
        sa.Column("unwanted_reason", sa.String(40)),
        sa.Column("erase_at", sa.BigInteger()),
        sa.Column("forgotten", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("misplaced", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("folders", sa.Text(), server_default="[]", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["drive_id"], ["drives.id"], name="fk_documents_drive_id"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_documents_org_id"),
        sa.PrimaryKeyConstraint("id", name="pk_documents"),
    )
    op.create_index("ix_documents_item", "documents", ["drive_id", "item_id"], unique=True)
    op.create_table(
        "items",
        sa.Column("drive_id", sa.String(64), nullable=False),
        sa.Column("item_id", sa.String(200), nullable=False),
        sa.Column("parent_id", sa.String(200)),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("size", sa.BigInteger()),
        sa.Column("media_type", sa.Text()),
        sa.Column("etag", sa.Text()),
        sa.Column("quick_xor", sa.String(40)),
        sa.Column("created_at", sa.BigInteger()),
        sa.Column("modified_at", sa.BigInteger()),
        sa.Column("web_url", sa.Text()),
        sa.Column("malware", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("deleted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("version_key", sa.Text(), nullable=False),
        sa.Column("dirty", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(["drive_id"], ["drives.id"], name="fk_items_drive_id"),
        sa.PrimaryKeyConstraint("drive_id", "item_id", name="pk_items"),
    )
    op.create_index("ix_items_dirty", "items", ["drive_id"], **_where("dirty = 1", "dirty"))
    op.create_index("ix_items_parent", "items", ["drive_id", "parent_id"])
    op.create_table(
        "coverage",
        sa.Column("connection_id", sa.String(64), nullable=False),
        sa.Column("item_id", sa.String(200), nullable=False),
        sa.Column("document_id", sa.String(64)),
        sa.Column("admitted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("reason", sa.String(40)),
        sa.Column("leaving", sa.String(40)),
        sa.ForeignKeyConstraint(
            ["connection_id"], ["connections.id"], name="fk_coverage_connection_id"
        ),
        sa.PrimaryKeyConstraint("connection_id", "item_id", name="pk_coverage"),
    )
    op.create_index("ix_coverage_document", "coverage", ["document_id"])
    op.create_index(
        "ix_coverage_leaving", "coverage", ["connection_id"], **_where("leaving IS NOT NULL")
    )
    op.create_table(
        "imports",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("document_id", sa.String(64), nullable=False),
        sa.Column("version_key", sa.Text(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("round", sa.Integer(), server_default="1", nullable=False),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("reason", sa.String(40)),
        sa.Column("detail", sa.Text()),
        sa.Column("shown", sa.Boolean()),
        sa.Column("attention", sa.String(40)),
        sa.Column("hold", sa.String(40)),
        sa.Column("backend_job", sa.String(200)),
        sa.Column("deadline_at", sa.BigInteger()),
        sa.Column("poll_count", sa.Integer(), server_default="0", nullable=False),
        sa.Column("misplaced", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("listed_size", sa.BigInteger()),
        sa.Column("quick_xor", sa.String(40)),
        sa.Column("size", sa.BigInteger()),
        sa.Column("sha256", sa.String(64)),
        sa.Column("integrity", sa.String(40)),
        sa.Column("same_as", sa.String(64)),
        sa.Column("pages", sa.Integer()),
        sa.Column("chunks", sa.Integer()),
        sa.Column("modified_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("settled_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["document_id"], ["documents.id"], name="fk_imports_document_id"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_imports_org_id"),
        sa.PrimaryKeyConstraint("id", name="pk_imports"),
    )
    op.create_index("ix_imports_document", "imports", ["document_id"])
    op.create_index("ix_imports_state", "imports", ["state"])
    op.create_table(
        "ledger",
        sa.Column("id", _SERIAL, nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("document_id", sa.String(64), nullable=False),
        sa.Column("import_id", sa.String(64), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["documents.id"], name="fk_ledger_document_id"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_ledger_org_id"),
        sa.PrimaryKeyConstraint("id", name="pk_ledger"),
        sa.UniqueConstraint("document_id", "sha256", name="uq_ledger_document_id_sha256"),
        sa.UniqueConstraint("import_id", name="uq_ledger_import_id"),
    )
    op.create_index("ix_ledger_org_id", "ledger", ["org_id"])
    op.create_table(
        "import_events",
        sa.Column("id", _SERIAL, nullable=False),
        sa.Column("import_id", sa.String(64), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.String(40), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("reason", sa.String(40)),
        sa.Column("detail", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(["import_id"], ["imports.id"], name="fk_import_events_import_id"),
        sa.PrimaryKeyConstraint("id", name="pk_import_events"),
    )
    op.create_index("ix_import_events_import_id", "import_events", ["import_id"])


def downgrade() -> None:
    """Drop all tables, the other way round."""
    for table in (
        "import_events",
        "ledger",
        "imports",
        "coverage",
        "items",
        "documents",
        "connections",
        "drives",
        "accounts",
        "reminders",
        "orgs",
        "leases",
        "index_jobs",
        "heartbeats",
        "facts",
    ):
        op.drop_table(table)
