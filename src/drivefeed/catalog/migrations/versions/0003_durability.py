"""What keeps imports once and charged once: backends by name, and what else durability needs.

Instants are milliseconds since the epoch. What each table is for is told in
``drivefeed.catalog.tables``.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what each part of it needs."""
    _backends()


def _backends() -> None:
    op.add_column("imports", sa.Column("backend", sa.String(40)))
    op.add_column("index_jobs", sa.Column("document_id", sa.String(64)))
    op.add_column("index_jobs", sa.Column("seq", sa.BigInteger()))
    op.add_column(
        "index_jobs", sa.Column("shown", sa.Boolean(), server_default=sa.true(), nullable=False)
    )
    op.create_index("ix_index_jobs_document_id", "index_jobs", ["document_id"])
