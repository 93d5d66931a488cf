"""Whose an import or a document is, also where another installation submitted it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from drivefeed.catalog.tables import documents, imports, index_jobs

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

    from drivefeed.catalog.engine import Catalog


class CatalogOwners:
    """Answers from the rows of imports and documents, else of jobs of the embedded backend."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def owner_of_import(self, import_id: str) -> str | None:
        """Return the organization's id, or None where nobody knows the import."""
        return await self._owner(imports, import_id, index_jobs.c.import_id == import_id)

    async def owner_of_document(self, document_id: str) -> str | None:
        """Return the organization's id, or None where nobody knows the document."""
        return await self._owner(documents, document_id, index_jobs.c.document_id == document_id)

    async def _owner(self, table: Any, key: str, is_its_job: ColumnElement[bool]) -> str | None:
        async with self._catalog.read() as connection:
            found = await connection.scalar(select(table.c.org_id).where(table.c.id == key))
            if found is not None:
                return str(found)
            sent = await connection.scalar(
                select(index_jobs.c.submission).where(is_its_job).limit(1)
            )
        return None if sent is None else str(json.loads(sent)["org_id"])
