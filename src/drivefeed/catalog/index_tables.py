"""The tables of the vector index: what its collections are made with, and what orgs chose."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, LargeBinary, String, Table, Text

from drivefeed.catalog.columns import flag, id_column, instant, metadata

collections = Table(
    "collections",
    metadata,
    # The vector index: embedded, or a server's, with the collection of the settings.
    Column("index_name", String(200), primary_key=True),
    # Whose documents it holds; empty for those of all who have none of their own.
    Column("org_id", String(64), primary_key=True),
    # The collection on the server, or the folder of the embedded index.
    Column("name", String(200), primary_key=True),
    # active (search asks it), building, old (to be removed), leaving (the org's points are to be
    # removed from it, the others' stay), gone (removed; kept for its number).
    Column("state", String(12), nullable=False),
    Column("provider", String(20), nullable=False),
    Column("model", Text, nullable=False),
    Column("dimension", Integer, nullable=False),
    Column("distance", String(12), nullable=False),
    # Which of the index it is, by which names differ; 0 where the org builds in the common one.
    Column("number", Integer, nullable=False),
    # Whether files that could not be read again may be missing after the swap.
    flag("leave_out"),
    # What opens its embedder; null for the settings.
    Column("choice_id", String(64)),
)

org_embeddings = Table(
    "org_embeddings",
    metadata,
    id_column(),
    Column("org_id", ForeignKey("orgs.id"), nullable=False),
    # Whether it is what the org asks for; others are kept while a collection is made with them.
    Column("wanted", Boolean, nullable=False),
    Column("provider", String(20), nullable=False),
    Column("model", Text, nullable=False),
    Column("base_url", Text, nullable=False),
    # Dimension, prefixes and the like, as JSON; what is missing is what is known of the model.
    Column("options", Text, nullable=False),
    # The key of the service, sealed with the row's id as associated data; null without one.
    Column("sealed", LargeBinary),
    Column("key_id", String(40)),
    Column("revision", Integer, nullable=False, server_default="1"),
    instant("updated_at", nullable=False),
    Index("ix_org_embeddings_org_id", "org_id"),
)
