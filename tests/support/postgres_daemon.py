"""drivefeed as processes of their own over Postgres; rows are read by the database's own client."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import asyncpg

from support.daemon import Daemon

if TYPE_CHECKING:
    from pathlib import Path

    from support.sim import Sim

SECRET_KEY = base64.b64encode(b"a key of the tests, 32 bytes now").decode()

_UNREST = """
SELECT
  (SELECT count(*) FROM coverage JOIN items USING (item_id) WHERE NOT deleted) AS files,
  (SELECT count(*) FROM drives
     WHERE last_round_at IS NULL OR enumerating OR settling) AS drives,
  (SELECT count(*) FROM connections WHERE admitting) AS connections,
  (SELECT count(*) FROM imports WHERE attention IS NULL
     AND state NOT IN ('settled', 'rejected', 'withdrawn')) AS imports,
  (SELECT count(*) FROM documents
     JOIN imports ON imports.id = wanted_import_id WHERE imports.state = 'settled'
     AND (live_import_id IS DISTINCT FROM wanted_import_id OR live_round <> round)) AS swaps
"""


def rows_at(url: str, sql: str, *values: Any) -> list[dict[str, Any]]:
    """Ask a Postgres; values stand at ``$1``, ``$2`` …"""

    async def ask() -> list[dict[str, Any]]:
        connection = await asyncpg.connect(url, timeout=20)
        try:
            return [dict(row) for row in await connection.fetch(sql, *values)]
        finally:
            await connection.close()

    return asyncio.run(ask())


def unrest_at(url: str, files: int) -> dict[str, int]:
    """Count what is still to do in a catalog; empty at rest."""
    (counts,) = rows_at(url, _UNREST)
    missing = files - counts.pop("files")
    return {key: count for key, count in (counts | {"files": missing}).items() if count}


class PostgresDaemon(Daemon):
    """A daemon whose catalog is in Postgres.

    Args:
        url: its database.
        words: the command that it is.
    """

    def __init__(
        self,
        home: Path,
        sim: Sim,
        url: str,
        *,
        words: tuple[str, ...] = ("up",),
        settings: str = "",
        **wanted: Any,
    ) -> None:
        self.url = url
        lines = [f"database_url = {json.dumps(url)}", f"secret_key = {json.dumps(SECRET_KEY)}"]
        super().__init__(home, sim, settings="\n".join([*lines, settings]), **wanted)
        self._words = words

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Read the catalog."""
        return rows_at(self.url, sql, *values)

    def unrest(self, files: int) -> dict[str, int]:
        """Count what is still to do."""
        return unrest_at(self.url, files)
