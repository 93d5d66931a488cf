"""The tables of access: secrets, API keys, what people did, and what people are told."""

from __future__ import annotations

from sqlalchemy import (
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from drivefeed.catalog.columns import code, flag, id_column, instant, metadata, serial_column, where

credentials = Table(
    "credentials",
    metadata,
    id_column(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    Column("account_id", ForeignKey("accounts.id"), nullable=False),
    # secret, certificate or tokens.
    Column("kind", String(20), nullable=False),
    # AES-GCM: nonce, ciphertext and tag, with the row's id as associated data.
    Column("sealed", LargeBinary, nullable=False),
    Column("key_id", String(40), nullable=False),
    Column("revision", Integer, nullable=False, server_default="1"),
    instant("updated_at", nullable=False),
    UniqueConstraint("account_id", "kind"),
)

api_keys = Table(
    "api_keys",
    metadata,
    id_column(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    Column("name", Text, nullable=False),
    # SHA-256 of the whole key in hex; the key itself is shown once and kept nowhere.
    Column("hash", String(64), nullable=False, unique=True),
    # Its first characters, by which people tell keys apart.
    Column("prefix", String(20), nullable=False),
    # Words with spaces between: read, write, admin.
    Column("scopes", Text, nullable=False),
    # A link that signs a browser in once, and the session it becomes.
    flag("is_link"),
    flag("is_session"),
    # The key that signed a session in; revoking the key ends the session.
    Column("made_from", String(64)),
    instant("expires_at"),
    instant("used_at"),
    instant("revoked_at"),
    instant("created_at", nullable=False),
    Index("ix_api_keys_org", "org_id"),
)

audit_log = Table(
    "audit_log",
    metadata,
    serial_column(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    instant("at", nullable=False),
    # Who: a user of the machine, a key's name, or a part of drivefeed.
    Column("actor", Text, nullable=False),
    # What: connection.changed, account.added, secrets.rotated.
    Column("action", String(60), nullable=False),
    Column("subject_id", String(64), nullable=False),
    # What it was and what it became, as JSON without secrets.
    Column("before", Text),
    Column("after", Text),
    Index("ix_audit_log_subject", "subject_id", "id"),
)

notices = Table(
    "notices",
    metadata,
    id_column(),
    # Null where it concerns the whole installation.
    Column("org_id", ForeignKey("orgs.id")),
    # What it is about, so that one trouble is told once: kind, subject, and the step of a warning.
    Column("dedupe_key", String(200), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("severity", String(20), nullable=False),
    Column("subject_id", String(64)),
    # The subject for people: connection 'Handbook'.
    Column("subject", Text, nullable=False, server_default=""),
    code("reason"),
    Column("words", Text, nullable=False),
    Column("remedy", Text, nullable=False, server_default=""),
    Column("command", Text, nullable=False, server_default=""),
    # At how many looks it was seen.
    Column("count", Integer, nullable=False, server_default="1"),
    instant("first_at", nullable=False),
    instant("last_at", nullable=False),
    # When it went away; one that comes back is a new row.
    instant("over_at"),
    # One trouble has one open row, whoever looks.
    Index("ix_notices_open", "dedupe_key", unique=True, **where("over_at IS NULL")),
)

notice_deliveries = Table(
    "notice_deliveries",
    metadata,
    Column("notice_id", ForeignKey("notices.id"), primary_key=True),
    # The name of a channel in the settings.
    Column("channel", String(80), primary_key=True),
    # What is told of it: opened or over.
    Column("happening", String(20), primary_key=True),
    # Names the message it is part of, from the first attempt on: receivers tell copies by it.
    Column("message_key", String(80)),
    Column("attempts", Integer, nullable=False, server_default="0"),
    instant("due_at"),
    # Whoever sends it has it until then.
    instant("busy_until"),
    instant("made_at", nullable=False),
    instant("sent_at"),
    instant("gave_up_at"),
    # What the server answered, or why it is not sent.
    Column("detail", Text, nullable=False, server_default=""),
    Index("ix_notice_deliveries_due", "channel", **where("due_at IS NOT NULL")),
)
