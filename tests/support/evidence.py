"""What is true outside of drivefeed: rows of the catalog's file, objects of the store's folder."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Charge:
    """A row of the ledger."""

    import_id: str
    document_id: str
    sha256: str
    pages: int


def unrest_in(data: Path, files: int) -> dict[str, int]:
    """Count what is still to do in a catalog; empty at rest."""
    try:
        counts = rows_in(
            data,
            """
            SELECT
              (SELECT count(*) FROM coverage JOIN items USING (item_id) WHERE NOT deleted) AS files,
              (SELECT count(*) FROM drives
                 WHERE last_round_at IS NULL OR enumerating OR settling) AS drives,
              (SELECT count(*) FROM connections WHERE admitting) AS connections,
              (SELECT count(*) FROM imports WHERE attention IS NULL
                 AND state NOT IN ('settled', 'rejected', 'withdrawn')) AS imports,
              (SELECT count(*) FROM documents
                 JOIN imports ON imports.id = wanted_import_id WHERE imports.state = 'settled'
                 AND (live_import_id IS NOT wanted_import_id OR live_round <> round)) AS swaps
            """,
        )[0]
    except sqlite3.OperationalError:
        return {"catalog": 1}
    missing = files - counts.pop("files")
    return {key: count for key, count in (counts | {"files": missing}).items() if count}


def rows_in(data: Path, sql: str, *values: Any) -> list[dict[str, Any]]:
    """Read the catalog of a data folder, without writing to it."""
    uri = f"file:{(data / 'catalog.sqlite').absolute()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=30)) as catalog:
        catalog.row_factory = sqlite3.Row
        return [dict(row) for row in catalog.execute(sql, values)]


def objects_in(data: Path) -> dict[str, Path]:
    """Return the objects in the store of a data folder: key → file."""
    root = data / "objects"
    found: dict[str, Path] = {}
    # A folder may be removed between its listing and the look into it, and os.walk passes over it.
    for folder, below, names in os.walk(root):
        if ".partial" in below:
            below.remove(".partial")
        for name in names:
            path = Path(folder, name)
            found[path.relative_to(root).as_posix()] = path
    return found


def read_log(path: Path) -> list[dict[str, Any]]:
    """Read a log of JSON lines; other lines come as ``{"event": line, "level": "unknown"}``."""
    found = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        found.append(entry if isinstance(entry, dict) else {"event": line, "level": "unknown"})
    return found


def files_below(folder: Path) -> dict[str, Path]:
    """Return the files of a folder: path with ``/`` → file."""
    return {
        path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()
    }


def sha256(path: Path) -> str:
    """Return the hash of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
