"""What keeps imports once and charged once: quota, ledger, backends, fairness.

Instants are milliseconds since the epoch. What each table is for is told in
``drivefeed.catalog.tables`` and ``drivefeed.catalog.usage_tables``.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_REFUSAL = "The ledger is only appended to; a correction is an entry of its own."


def upgrade() -> None:
    """Make what is new, a part at a time."""
    _quota()
    _backends()
    _fairness()
    _pruning()


def _pruning() -> None:
    op.add_column(
        "connections",
        sa.Column("pruned", sa.Boolean(), server_default=sa.false(), nullable=False),
    )


def _quota() -> None:
    for column in (
        sa.Column("page_limit", sa.BigInteger()),
        sa.Column("limit_period", sa.String(10), server_default="total", nullable=False),
        sa.Column("limit_zone", sa.Text(), server_default="UTC", nullable=False),
        sa.Column("period_start", sa.BigInteger()),
        sa.Column("period_used", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("pages_held", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("quota_due_at", sa.BigInteger()),
    ):
        op.add_column("orgs", column)
    op.execute("UPDATE orgs SET period_used = pages_used")
    op.add_column("import_events", sa.Column("pages", sa.Integer()))
    for name, table, columns, words in (
        ("ix_orgs_quota_due_at", "orgs", ["quota_due_at"], "quota_due_at IS NOT NULL"),
        ("ix_imports_in_line", "imports", ["org_id", "created_at", "id"], "hold = 'quota'"),
    ):
        condition = sa.text(words)
        op.create_index(name, table, columns, sqlite_where=condition, postgresql_where=condition)
    op.create_table(
        "reservations",
        sa.Column("import_id", sa.String(64), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("wanted", sa.Integer(), nullable=False),
        sa.Column("counted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger()),
        sa.PrimaryKeyConstraint("import_id", "round", name="pk_reservations"),
        sa.ForeignKeyConstraint(["import_id"], ["imports.id"], name="fk_reservations_import_id"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_reservations_org_id"),
    )
    held = sa.text("state = 'held'")
    op.create_index(
        "ix_reservations_held",
        "reservations",
        ["org_id"],
        sqlite_where=held,
        postgresql_where=held,
    )
    op.drop_index("ix_ledger_org_id", "ledger")
    if op.get_bind().dialect.name == "postgresql":
        _widen_the_ledger()
    else:
        _copy_the_ledger()
    op.create_index("ix_ledger_org_id_at", "ledger", ["org_id", "at"])
    _guard_the_ledger()


def _new_columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("kind", sa.String(12), server_default="charge", nullable=False),
        sa.Column("overage", sa.Integer(), server_default="0", nullable=False),
        sa.Column("usage_owner", sa.String(12), server_default="drivefeed", nullable=False),
        sa.Column("connection_id", sa.String(64)),
        sa.Column("corrects", _SERIAL),
        sa.Column("reason", sa.Text()),
        sa.Column("actor", sa.Text()),
    ]


def _widen_the_ledger() -> None:
    for name in ("document_id", "import_id", "sha256"):
        op.alter_column("ledger", name, nullable=True)
    for column in _new_columns():
        op.add_column("ledger", column)
    op.create_foreign_key("fk_ledger_corrects", "ledger", "ledger", ["corrects"], ["id"])


def _copy_the_ledger() -> None:
    """SQLite cannot take NOT NULL from a column."""
    op.rename_table("ledger", "ledger_of_0002")
    op.create_table(
        "ledger",
        sa.Column("id", _SERIAL, nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("document_id", sa.String(64)),
        sa.Column("import_id", sa.String(64)),
        sa.Column("sha256", sa.String(64)),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        *_new_columns(),
        sa.ForeignKeyConstraint(["document_id"], ["documents.id"], name="fk_ledger_document_id"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_ledger_org_id"),
        sa.ForeignKeyConstraint(["corrects"], ["ledger.id"], name="fk_ledger_corrects"),
        sa.PrimaryKeyConstraint("id", name="pk_ledger"),
        sa.UniqueConstraint("document_id", "sha256", name="uq_ledger_document_id_sha256"),
        sa.UniqueConstraint("import_id", name="uq_ledger_import_id"),
    )
    names = "id, org_id, document_id, import_id, sha256, pages, at"
    op.execute(f"INSERT INTO ledger ({names}) SELECT {names} FROM ledger_of_0002")  # noqa: S608 - constants
    op.drop_table("ledger_of_0002")


def _guard_the_ledger() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE OR REPLACE FUNCTION ledger_is_appended_to() RETURNS trigger LANGUAGE plpgsql "
            f"AS $$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"
        )
        op.execute(
            "CREATE TRIGGER ledger_no_change BEFORE UPDATE OR DELETE ON ledger "
            "FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_appended_to()"
        )
        return
    for verb in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER ledger_no_{verb.lower()} BEFORE {verb} ON ledger "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"
        )


def _backends() -> None:
    op.add_column("imports", sa.Column("backend", sa.String(40)))
    op.add_column("index_jobs", sa.Column("document_id", sa.String(64)))
    op.add_column("index_jobs", sa.Column("seq", sa.BigInteger()))
    op.add_column(
        "index_jobs", sa.Column("shown", sa.Boolean(), server_default=sa.true(), nullable=False)
    )
    op.add_column(
        "index_jobs", sa.Column("read_at_start", sa.Integer(), server_default="0", nullable=False)
    )
    op.create_index("ix_index_jobs_document_id", "index_jobs", ["document_id"])


def _fairness() -> None:
    unindexed = (
        "state IN ('stored', 'submitted') AND attention IS NULL "
        "AND (hold IS NULL OR hold NOT IN ('quota', 'paused'))"
    )
    for name, table, columns, words in (
        ("ix_reminders_sent", "reminders", ["stage", "org_id"], "sent_at IS NOT NULL"),
        ("ix_imports_unindexed", "imports", ["state", "org_id", "size"], unindexed),
    ):
        condition = sa.text(words)
        op.create_index(name, table, columns, sqlite_where=condition, postgresql_where=condition)
