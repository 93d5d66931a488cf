"""What following Microsoft Graph needs: words about changes, and a pace for each drive.

Instants are milliseconds since the epoch. What each table is for is told in
``drivefeed.catalog.tables`` and ``drivefeed.catalog.subscription_tables``.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make what is new, a part at a time."""
    _notifications()


def _notifications() -> None:
    for name in ("told_at", "woken_at", "changed_at", "pace_ms"):
        op.add_column("drives", sa.Column(name, sa.BigInteger()))
    op.create_table(
        "subscriptions",
        sa.Column("drive_id", sa.String(64), nullable=False),
        sa.Column("subscription_id", sa.String(64), nullable=False),
        sa.Column("account_id", sa.String(64), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("remote_id", sa.Text()),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("retry_at", sa.BigInteger()),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("wants_renewal", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("detail", sa.Text()),
        sa.PrimaryKeyConstraint("drive_id", name="pk_subscriptions"),
        sa.ForeignKeyConstraint(["drive_id"], ["drives.id"], name="fk_subscriptions_drive_id"),
        sa.UniqueConstraint("subscription_id", name="uq_subscriptions_subscription_id"),
    )
