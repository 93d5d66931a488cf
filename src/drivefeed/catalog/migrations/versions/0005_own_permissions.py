"""What a file's permissions are: whether they are its own, where somebody asked."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; nobody asked yet."""
    op.add_column("items", sa.Column("own_permissions", sa.Boolean()))
