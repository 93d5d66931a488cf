"""Microsoft Graph as it really behaves: rounds that lead nowhere, ids that change.

What each column is for is told in ``drivefeed.catalog.tables``.
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
    _rounds()


def _rounds() -> None:
    for column in (
        sa.Column("round_link", sa.Text()),
        sa.Column("barren_pages", sa.Integer(), server_default="0", nullable=False),
        sa.Column("given_up", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failing_since", sa.BigInteger()),
    ):
        op.add_column("drives", column)
    op.add_column("items", sa.Column("origin_id", sa.String(200)))
