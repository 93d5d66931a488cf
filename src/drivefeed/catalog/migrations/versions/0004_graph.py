"""What many organizations and Microsoft Graph need: an own embedding, words of changes, rounds.

Instants are milliseconds since the epoch. What each table is for is told in
``drivefeed.catalog.tables``, ``index_tables`` and ``subscription_tables``.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_FACT = "index:"


def upgrade() -> None:
    """Make what is new, a part at a time."""
    _embeddings_of_orgs()
    _notifications()
    _rounds()


def _embeddings_of_orgs() -> None:
    op.create_table(
        "collections",
        sa.Column("index_name", sa.String(200), nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("provider", sa.String(20), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("distance", sa.String(12), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("leave_out", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("choice_id", sa.String(64)),
        sa.PrimaryKeyConstraint("index_name", "org_id", "name", name="pk_collections"),
    )
    op.create_table(
        "org_embeddings",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("org_id", sa.String(64), nullable=False),
        sa.Column("wanted", sa.Boolean(), nullable=False),
        sa.Column("provider", sa.String(20), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary()),
        sa.Column("key_id", sa.String(40)),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_org_embeddings"),
        sa.ForeignKeyConstraint(["org_id"], ["orgs.id"], name="fk_org_embeddings_org_id"),
    )
    op.create_index("ix_org_embeddings_org_id", "org_embeddings", ["org_id"])
    _collections_from_facts()


def _collections_from_facts() -> None:
    """Carry over what was a fact of the installation; there was one collection for all."""
    connection = op.get_bind()
    rows = connection.execute(
        sa.text("SELECT name, value FROM facts WHERE name LIKE :like"), {"like": f"{_FACT}%"}
    ).all()
    for name, value in rows:
        for row in _collections_of(name.removeprefix(_FACT), json.loads(value)):
            connection.execute(
                sa.text(
                    "INSERT INTO collections (index_name, org_id, name, state, provider, model, "
                    "dimension, distance, number, leave_out) VALUES (:index_name, '', :name, "
                    ":state, :provider, :model, :dimension, 'cosine', :number, :leave_out)"
                ),
                row,
            )
        connection.execute(sa.text("DELETE FROM facts WHERE name = :name"), {"name": name})


def _collections_of(index_name: str, known: dict[str, Any]) -> list[dict[str, Any]]:
    active, building, last = known["active"], known["building"], known["number"]
    if active is None:
        return []
    found = [(active, "active", last if building is None else last - 1, False)]
    if building is not None:
        found.append((building, "building", last, known["leave_out"]))
    found += [({**active, "name": name}, "old", 1, False) for name in known["old"]]
    return [
        {
            "index_name": index_name,
            **made,
            "state": state,
            "number": number,
            "leave_out": leave_out,
        }
        for made, state, number, leave_out in found
    ]


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


def _rounds() -> None:
    for column in (
        sa.Column("round_link", sa.Text()),
        sa.Column("barren_pages", sa.Integer(), server_default="0", nullable=False),
        sa.Column("given_up", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failing_since", sa.BigInteger()),
    ):
        op.add_column("drives", column)
    op.add_column("items", sa.Column("origin_id", sa.String(200)))
