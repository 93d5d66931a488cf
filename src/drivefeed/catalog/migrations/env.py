"""Alembic's entry: migrations run on the connection that drivefeed hands over."""

from __future__ import annotations

from alembic import context

from drivefeed.catalog import (  # noqa: F401 (they fill the metadata)
    access_tables,
    index_tables,
    subscription_tables,
    tables,
    usage_tables,
)
from drivefeed.catalog.columns import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
