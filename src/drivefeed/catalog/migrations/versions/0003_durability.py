"""Indexes for fairness: what is in the queue and whose, and what is stored and not indexed yet.

What each is for is told in ``drivefeed.catalog.tables``.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make what is new, a part at a time."""
    _fairness()


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
