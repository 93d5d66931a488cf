"""The table of subscriptions: of whose changes Microsoft tells us."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Integer, String, Table, Text, UniqueConstraint

from drivefeed.catalog.columns import flag, instant, metadata

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("drive_id", ForeignKey("drives.id"), primary_key=True),
    # Ours; it stands in the address that Microsoft calls, and is a new one for each asking.
    Column("subscription_id", String(64), nullable=False),
    # Whose sign-in asked for it; no foreign key, since an account may go first.
    Column("account_id", String(64), nullable=False),
    Column("state", String(20), nullable=False),
    # SHA-256 (hex) of the clientState, which is kept nowhere.
    Column("secret_hash", String(64), nullable=False),
    Column("remote_id", Text),
    instant("asked_at", nullable=False),
    instant("expires_at"),
    instant("retry_at"),
    Column("failures", Integer, nullable=False, server_default="0"),
    flag("wants_renewal"),
    Column("detail", Text),
    UniqueConstraint("subscription_id"),
)
