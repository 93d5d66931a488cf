"""Accounts in the catalog with their secrets; API keys, an audit log, and notices.

Instants are milliseconds since the epoch. What each table is for is told in
``drivefeed.catalog.tables`` and ``drivefeed.catalog.access_tables``.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add columns to what is there, then make the new tables."""
    op.create_index("ix_items_listed", "items", ["drive_id", sa.text("lower(name)"), "item_id"])
    for column in (
        sa.Column("sign_in", sa.String(20)),
        sa.Column("tenant_id", sa.Text()),
        sa.Column("client_id", sa.Text()),
        sa.Column("cloud", sa.String(20), server_default="global", nullable=False),
        sa.Column("authority", sa.Text()),
        sa.Column("graph_url", sa.Text()),
        sa.Column("ca_file", sa.Text()),
        sa.Column("token_file", sa.Text()),
        sa.Column("declared", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("user_name", sa.Text()),
        sa.Column("user_id", sa.Text()),
        sa.Column("state", sa.String(20), server_default="ok", nullable=False),
        sa.Column("reason", sa.String(40)),
        sa.Column("detail", sa.Text()),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
    ):
        op.add_column("accounts", column)
    op.add_column("items", sa.Column("shared", sa.Boolean()))
    op.add_column("connections", sa.Column("interval_ms", sa.BigInteger()))
    op.add_column("connections", sa.Column("plan", sa.Text()))
    op.add_column(
        "connections",
        sa.Column("declared", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    op.add_column("connections", sa.Column("url", sa.Text()))
    condition = sa.text("attention IS NOT NULL")
    op.create_index(
        "ix_imports_attention",
        "imports",
        ["attention"],
        sqlite_where=condition,
        postgresql_where=condition,
    )
    _make_access_tables()
    _make_notice_tables()
    op.create_table(
        "reindexed",
        sa.Column("collection", sa.String(120), nullable=False),
        sa.Column("import_id", sa.String(64), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("chunks", sa.Integer()),
        sa.Column("reason", sa.String(40)),
        sa.Column("detail", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("collection", "import_id", "round", name="pk_reindexed"),
    )


def _make_access_tables() -> None:
    op.create_table(
        "credentials",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.String(40), nullable=False),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_credentials"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_credentials_org_id"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_credentials_account_id"),
        sa.UniqueConstraint("account_id", "kind", name="uq_credentials_account_id_kind"),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("prefix", sa.String(20), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("is_link", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("is_session", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("made_from", sa.String(64)),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("used_at", sa.BigInteger()),
        sa.Column("revoked_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_api_keys"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_api_keys_org_id"),
        sa.UniqueConstraint("hash", name="uq_api_keys_hash"),
    )
    op.create_index("ix_api_keys_org", "api_keys", ["org_id"])
    op.create_table(
        "audit_log",
        sa.Column("id", _SERIAL, autoincrement=True, nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.String(60), nullable=False),
        sa.Column("subject_id", sa.String(64), nullable=False),
        sa.Column("before", sa.Text()),
        sa.Column("after", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_audit_log_org_id"),
    )
    op.create_index("ix_audit_log_subject", "audit_log", ["subject_id", "id"])


def _make_notice_tables() -> None:
    op.create_table(
        "notices",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("org_id", sa.String(64)),
        sa.Column("dedupe_key", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("severity", sa.String(20), nullable=False),
        sa.Column("subject_id", sa.String(64)),
        sa.Column("subject", sa.Text(), server_default="", nullable=False),
        sa.Column("reason", sa.String(40)),
        sa.Column("words", sa.Text(), nullable=False),
        sa.Column("remedy", sa.Text(), server_default="", nullable=False),
        sa.Column("command", sa.Text(), server_default="", nullable=False),
        sa.Column("count", sa.Integer(), server_default="1", nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=False),
        sa.Column("over_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_notices"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_notices_org_id"),
    )
    op.create_index(
        "ix_notices_open",
        "notices",
        ["dedupe_key"],
        unique=True,
        sqlite_where=sa.text("over_at IS NULL"),
        postgresql_where=sa.text("over_at IS NULL"),
    )
    op.create_table(
        "notice_deliveries",
        sa.Column("notice_id", sa.String(64), nullable=False),
        sa.Column("channel", sa.String(80), nullable=False),
        sa.Column("happening", sa.String(20), nullable=False),
        sa.Column("message_key", sa.String(80)),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("due_at", sa.BigInteger()),
        sa.Column("busy_until", sa.BigInteger()),
        sa.Column("made_at", sa.BigInteger(), nullable=False),
        sa.Column("sent_at", sa.BigInteger()),
        sa.Column("gave_up_at", sa.BigInteger()),
        sa.Column("detail", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("notice_id", "channel", "happening", name="pk_notice_deliveries"),
        sa.ForeignKeyConstraint(
            ["notice_id"], ["notices.id"], name="fk_notice_deliveries_notice_id"
        ),
    )
    op.create_index(
        "ix_notice_deliveries_due",
        "notice_deliveries",
        ["channel"],
        sqlite_where=sa.text("due_at IS NOT NULL"),
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
