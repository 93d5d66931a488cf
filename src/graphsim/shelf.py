"""What a directory drive remembers between runs: its items, in SQLite, outside the folder."""

from __future__ import annotations

import fcntl
import hashlib
import secrets
import sqlite3
from typing import TYPE_CHECKING

import msgspec

from graphsim.items import Item, Profile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_SCHEMA = """
CREATE TABLE IF NOT EXISTS items (id TEXT PRIMARY KEY, state BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


class Shelf:
    """The remembered items of one served folder.

    Args:
        state: The state folder; created when missing.
        folder: The served folder, resolved.
        profile: The kind of drive: each kind has ids of its own.

    Raises:
        OSError: Another graphsim has the same folder open with the same state.
    """

    def __init__(self, state: Path, folder: Path, profile: Profile) -> None:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = hashlib.sha256(f"{profile}:{folder}".encode()).hexdigest()[:16]
        self._lock = (state / f"{name}.lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            message = f"Another graphsim already serves {folder} with the state folder {state}."
            raise OSError(error.errno, message) from error
        # Used by one thread at a time (the drive's lock), but not always by the same one.
        self._connection = sqlite3.connect(state / f"{name}.db", check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=NORMAL")
        self._connection.executescript(_SCHEMA)

    def items(self) -> list[Item]:
        """Return every remembered item, tombstones included."""
        rows = self._connection.execute("SELECT state FROM items").fetchall()
        return [msgspec.json.decode(row[0], type=Item) for row in rows]

    def seed(self) -> str:
        """Return the random text from which the drive's id is derived; made once."""
        with self._connection:
            self._connection.execute(
                "INSERT OR IGNORE INTO facts VALUES ('seed', ?)", (secrets.token_hex(8),)
            )
        row = self._connection.execute("SELECT value FROM facts WHERE name = 'seed'").fetchone()
        return str(row[0])

    def save(self, items: Iterable[Item]) -> None:
        """Remember the new states of items, all or none."""
        rows = [(item.id, msgspec.json.encode(item)) for item in items]
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO items VALUES (?, ?)", rows)

    def close(self) -> None:
        """Let go of the state folder."""
        self._connection.close()
        self._lock.close()
