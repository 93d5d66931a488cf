"""A scratch file beside the database: what one listing of a drive saw, and what it leaves in doubt.

A drive may hold millions of items, and a comparison must know which of them a listing did *not*
see. That is kept here, on the disk and not in memory. Nothing in the catalog depends on the file:
where it is lost, the listing is made once more. The place in the listing is part of the file, and
each page is one transaction, so that a killed process goes on where it was.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final, TypeVar

from drivefeed.catalog.scratch_rows import Suspect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from drivefeed.catalog.scratch_rows import Seen

T = TypeVar("T")

SCHEMA: Final = 1
_VARIABLES: Final = 500
_TABLES: Final = """
    CREATE TABLE IF NOT EXISTS words (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS seen (
        id TEXT PRIMARY KEY, parent TEXT, name TEXT, is_file INTEGER) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS suspects (
        id TEXT PRIMARY KEY, parent TEXT, doubt TEXT, state TEXT, asked INTEGER,
        told INTEGER DEFAULT 0) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS suspects_open ON suspects (id) WHERE state = 'open';
    CREATE INDEX IF NOT EXISTS suspects_below ON suspects (parent);
"""


class Scratch:
    """The file of one comparison; its methods work in threads, one at a time.

    Args:
        path: the file, made if it is not there; None for a temporary one that goes with it.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = asyncio.Lock()
        self._database: sqlite3.Connection | None = None

    async def aclose(self) -> None:
        """Close the file; a temporary one is gone then."""
        async with self._lock:
            database, self._database = self._database, None
            if database is not None:
                await asyncio.to_thread(database.close)

    async def discard(self) -> None:
        """Close the file and remove it."""
        await self.aclose()
        if self._path is not None:
            await asyncio.to_thread(self._path.unlink, missing_ok=True)

    async def clear(self) -> None:
        """Forget everything: the listing begins anew."""

        def forget(database: sqlite3.Connection) -> None:
            for table in ("seen", "suspects"):
                database.execute(f"DELETE FROM {table}")  # noqa: S608 - constants
            database.execute("DELETE FROM words WHERE name != 'began_at'")

        await self._do(forget)

    async def word(self, name: str) -> str | None:
        """Return what was kept under a name."""

        def look(database: sqlite3.Connection) -> str | None:
            row = database.execute("SELECT value FROM words WHERE name = ?", [name]).fetchone()
            return row[0] if row else None

        return await self._do(look)

    async def keep(
        self,
        words: dict[str, str | None],
        *,
        seen: Sequence[Seen] = (),
        gone: Iterable[str] = (),
        suspects: Sequence[Suspect] = (),
    ) -> None:
        """Write a piece of work and how far it came, in one transaction.

        Args:
            words: how far it came, by name.
            seen: what a page listed; the last word about an id counts.
            gone: what a page said to be removed.
            suspects: what is in doubt; who is in doubt already stays as it is.
        """

        def write(database: sqlite3.Connection) -> None:
            database.executemany("DELETE FROM seen WHERE id = ?", ([one] for one in gone))
            database.executemany(
                "INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?)",
                ((one.item_id, one.parent_id, one.name, one.is_file) for one in seen),
            )
            database.executemany(
                "INSERT OR IGNORE INTO suspects VALUES (?, ?, ?, 'open', 0, 0)",
                ((one.item_id, one.parent_id, one.doubt) for one in suspects),
            )
            database.executemany("INSERT OR REPLACE INTO words VALUES (?, ?)", words.items())

        await self._do(write)

    async def not_seen(self, item_ids: Sequence[str]) -> set[str]:
        """Return those of the ids that the listing did not see."""

        def look(database: sqlite3.Connection) -> set[str]:
            missing = set(item_ids)
            for start in range(0, len(item_ids), _VARIABLES):
                batch = list(item_ids[start : start + _VARIABLES])
                marks = ",".join("?" * len(batch))
                found = database.execute(f"SELECT id FROM seen WHERE id IN ({marks})", batch)  # noqa: S608 - marks only
                missing.difference_update(row[0] for row in found)
            return missing

        return await self._do(look)

    async def next_suspects(self, limit: int) -> list[Suspect]:
        """Return some that are to be asked for, folders before what lies in them."""

        def look(database: sqlite3.Connection) -> list[Suspect]:
            is_open = "FROM suspects s WHERE s.state = 'open'"
            columns = "s.id, s.parent, s.doubt, s.state, s.asked"
            rows = database.execute(
                f"SELECT {columns} {is_open} AND NOT EXISTS (SELECT 1 FROM suspects p "  # noqa: S608 - constants
                "WHERE p.id = s.parent AND p.state = 'open') LIMIT ?",
                [limit],
            ).fetchall()
            if not rows:  # a circle, which only a source that misbehaves can tell of
                rows = database.execute(f"SELECT {columns} {is_open} LIMIT 1").fetchall()
            return [Suspect(*row) for row in rows]

        return await self._do(look)

    async def settle(self, item_id: str, state: str) -> None:
        """Keep what an item's own answer showed.

        What lies in a folder that is gone, and was not seen elsewhere, is gone with it.
        """

        def write(database: sqlite3.Connection) -> None:
            database.execute("UPDATE suspects SET state = ? WHERE id = ?", [state, item_id])
            if state == "gone":
                database.execute(
                    "WITH RECURSIVE below(id) AS (VALUES(?) UNION SELECT s.id FROM suspects s "
                    "JOIN below ON s.parent = below.id WHERE s.doubt = 'unseen') "
                    "UPDATE suspects SET state = 'gone' WHERE state = 'open' AND id IN below",
                    [item_id],
                )

        await self._do(write)

    async def put_off(self, item_id: str) -> None:
        """Count that an item gave no answer."""
        await self._do(
            lambda database: database.execute(
                "UPDATE suspects SET asked = asked + 1 WHERE id = ?", [item_id]
            )
        )

    async def give_up(self) -> None:
        """Leave in doubt whatever was not asked for."""
        await self._do(
            lambda database: database.execute(
                "UPDATE suspects SET state = 'unclear' WHERE state = 'open'"
            )
        )

    async def settled(self, after: str, limit: int) -> list[Suspect]:
        """Page through those whose own answer was another than the tree's, by id."""

        def look(database: sqlite3.Connection) -> list[Suspect]:
            rows = database.execute(
                "SELECT id, parent, doubt, state, asked, told FROM suspects WHERE id > ? "
                "AND state NOT IN ('open', 'same') ORDER BY id LIMIT ?",
                [after, limit],
            )
            return [Suspect(*row) for row in rows]

        return await self._do(look)

    async def mark_told(self, item_ids: Sequence[str]) -> None:
        """Keep that a finding tells of these items."""

        def write(database: sqlite3.Connection) -> None:
            database.executemany(
                "UPDATE suspects SET told = 1 WHERE id = ?", ([one] for one in item_ids)
            )

        await self._do(write)

    async def is_told(self, item_id: str) -> bool:
        """Tell whether a finding tells of an item already."""

        def look(database: sqlite3.Connection) -> bool:
            row = database.execute("SELECT told FROM suspects WHERE id = ?", [item_id]).fetchone()
            return bool(row and row[0])

        return await self._do(look)

    async def counts(self) -> dict[str, int]:
        """Count items seen, as ``seen``, and suspects by state."""

        def look(database: sqlite3.Connection) -> dict[str, int]:
            seen = database.execute("SELECT count(*) FROM seen").fetchone()[0]
            states = database.execute("SELECT state, count(*) FROM suspects GROUP BY state")
            return {"seen": seen, **dict(states.fetchall())}

        return await self._do(look)

    async def place_of(self, item_id: str, root_id: str | None = None) -> tuple[str, bool]:
        """Return an item's path below a folder, as it was listed, and whether it lies there."""

        def look(database: sqlite3.Connection) -> tuple[str, bool]:
            names: list[str] = []
            passed: set[str] = set()
            here: str | None = item_id
            while here is not None and here not in passed:
                if here == root_id and names:
                    return "/".join(reversed(names)), True
                passed.add(here)
                row = database.execute(
                    "SELECT parent, name FROM seen WHERE id = ?", [here]
                ).fetchone()
                if row is None:
                    break
                here, name = row
                names.append(name or item_id)
            return "/".join(reversed(names)) or item_id, False

        return await self._do(look)

    async def is_file(self, item_id: str) -> bool:
        """Tell whether the listing saw it as a file."""

        def look(database: sqlite3.Connection) -> bool:
            row = database.execute("SELECT is_file FROM seen WHERE id = ?", [item_id]).fetchone()
            return bool(row and row[0])

        return await self._do(look)

    async def files_below(self, root_id: str) -> int:
        """Count the files that the listing saw below a folder."""

        def look(database: sqlite3.Connection) -> int:
            database.execute("CREATE INDEX IF NOT EXISTS seen_below ON seen (parent, id, is_file)")
            row = database.execute(
                "WITH RECURSIVE below(id, is_file) AS (SELECT id, is_file FROM seen WHERE "
                "parent = ? UNION SELECT s.id, s.is_file FROM seen s JOIN below ON "
                "s.parent = below.id) SELECT count(*) FROM below WHERE is_file",
                [root_id],
            ).fetchone()
            return int(row[0])

        return await self._do(look)

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        async with self._lock:
            return await asyncio.shield(asyncio.to_thread(self._transaction, work))

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._database is None:
            self._database = self._opened()
        with self._database:
            return work(self._database)

    def _opened(self) -> sqlite3.Connection:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if not _is_ours(self._path):
                self._path.unlink(missing_ok=True)
        # An empty name is a temporary file, which grows on the disk.
        database = sqlite3.connect(str(self._path or ""), check_same_thread=False)
        database.executescript(f"{_TABLES} PRAGMA user_version = {SCHEMA};")
        return database


def _is_ours(path: Path) -> bool:
    """Whether a file can be gone on with; one of another version, or damaged, is made anew."""
    if not path.exists():
        return True
    try:
        with closing(sqlite3.connect(path)) as database:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            return bool(version == SCHEMA)
    except sqlite3.DatabaseError:
        return False
