"""Backup and restore of a catalog in SQLite: consistent copies of one file, put in place at once.

Everything here blocks, so call it in a thread.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from drivefeed.catalog.engine import newest_migration
from drivefeed.catalog.restoring import FACT
from drivefeed.domain.errors import NeedsAttention, NotFound, Part, PartDown
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX: Final = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Copy:
    """A file that holds a catalog.

    Attributes:
        migration: the newest migration that was run on it.
    """

    path: Path
    size: int
    migration: str


def sqlite_path(url: str) -> Path | None:
    """Return the file of a catalog; None where it is in another database."""
    return Path(url.removeprefix(_PREFIX)) if url.startswith(_PREFIX) else None


def back_up(catalog: Path, target: Path) -> Copy:
    """Copy a catalog as it is at one moment, while others read and write it.

    The copy appears under its name once it is whole and was read through without an error.

    Raises:
        NotFound: there is no catalog.
        NeedsAttention: there is a file of that name already, or the copy cannot be written.
        PartDown: the catalog cannot be read.
    """
    if target.exists():
        raise NeedsAttention(
            f"'{target}' is there already. Name another file, or remove it.",
            reason=Reason.MISCONFIGURED,
        )
    partial = target.with_name(target.name + ".partial")
    try:
        _copy(catalog, partial)
        found = examine_copy(partial)
        _sync(partial)
        partial.rename(target)
        _sync(target.parent)
    except OSError as error:
        raise NeedsAttention(
            f"'{target}' cannot be written: {error.strerror}.", reason=Reason.MISCONFIGURED
        ) from error
    finally:
        _remove(partial)
    return Copy(target, found.size, found.migration)


def _copy(catalog: Path, partial: Path) -> None:
    # A log that a killed process left would be taken for that of this copy, and ruin it.
    _remove(partial)
    # It holds sealed secrets and what people's files are called.
    os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    if not catalog.is_file():
        raise NotFound(f"There is no catalog at '{catalog}'.")
    try:
        with (
            closing(_opened(catalog, "ro")) as source,
            closing(sqlite3.connect(partial)) as copy,
        ):
            # In one step, which readers and writers do not notice: in steps, every write of
            # another process would begin it anew.
            source.backup(copy, pages=-1)
            # One file without a log beside it.
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise PartDown(
            f"The catalog '{catalog}' cannot be copied: {error}.", part=Part.CATALOG
        ) from error


def examine_copy(file: Path) -> Copy:
    """Read a copy through, without changing it.

    Raises:
        NotFound: there is no such file.
        NeedsAttention: it is no catalog, damaged, or of a newer version of drivefeed.
    """
    if not file.is_file():
        raise NotFound(f"There is no file '{file}'.")
    try:
        with closing(_opened(file, "ro")) as copy:
            (said,) = copy.execute("PRAGMA quick_check(1)").fetchone()
            (migration,) = copy.execute("SELECT version_num FROM alembic_version").fetchone()
    except (sqlite3.Error, TypeError) as error:
        raise NeedsAttention(
            f"'{file}' is no backup of a catalog: {error}.", reason=Reason.MISCONFIGURED
        ) from error
    if said != "ok":
        raise NeedsAttention(
            f"'{file}' is damaged ({said}). Take another backup.", reason=Reason.MISCONFIGURED
        )
    if str(migration) > newest_migration():
        raise NeedsAttention(
            f"'{file}' was made by a newer version of drivefeed (schema {migration}, this one "
            f"knows {newest_migration()}). Install that version, then restore it.",
            reason=Reason.MISCONFIGURED,
        )
    return Copy(file, file.stat().st_size, str(migration))


def put_in_place(backup: Path, catalog: Path, *, epoch: str, now: int, suffix: str) -> Path | None:
    """Put a copy of a backup in the catalog's place, marked as restored.

    Nobody else may have the catalog open. What was there stays beside it, and is there under one
    of both names at any moment.

    Args:
        epoch: names the restore.
        suffix: what the name of the replaced file ends with.

    Returns:
        Where the replaced file is; None where there was none.

    Raises:
        PartDown: another process has the catalog open, or the backup cannot be read.
        NeedsAttention: a file cannot be written.
    """
    fresh = catalog.with_name(catalog.name + ".restoring")
    beside = catalog.with_name(f"{catalog.name}.{suffix}")
    try:
        catalog.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Not the file alone: what a killed process wrote last is in the log beside it.
        _copy(backup, fresh)
        _mark(fresh, epoch, now)
        examine_copy(fresh)
        _sync(fresh)
        _set_aside_log(catalog, beside)
        there_was = catalog.exists()
        if there_was:
            os.link(catalog, beside)
        fresh.replace(catalog)
        _sync(catalog.parent)
    except OSError as error:
        raise NeedsAttention(
            f"The catalog '{catalog}' cannot be replaced: {error.strerror}.",
            reason=Reason.MISCONFIGURED,
        ) from error
    finally:
        _remove(fresh)
    return beside if there_was else None


def _remove(file: Path) -> None:
    for leftover in (file, *_logs_of(file)):
        leftover.unlink(missing_ok=True)


def _mark(fresh: Path, epoch: str, now: int) -> None:
    value = json.dumps({"epoch": epoch, "at": now})
    with closing(sqlite3.connect(fresh)) as copy, copy:
        copy.execute("DELETE FROM facts WHERE name = ?", (FACT,))
        copy.execute("INSERT INTO facts (name, value) VALUES (?, ?)", (FACT, value))


def _set_aside_log(catalog: Path, beside: Path) -> None:
    """Let SQLite bring its log into the replaced file, or move it beside with that.

    A log that stayed would be taken for the log of the restored file, and ruin it.
    """
    try:
        with closing(_opened(catalog, "rw")) as former:
            former.execute("PRAGMA busy_timeout=2000")
            former.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            (mode,) = former.execute("PRAGMA journal_mode=DELETE").fetchone()
        if mode != "delete":
            raise _in_use(catalog)
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise _in_use(catalog) from error
    except sqlite3.DatabaseError:
        pass  # It is damaged, which may be why it is replaced; its log goes where it goes.
    for log in _logs_of(catalog):
        if log.exists():
            log.rename(beside.with_name(beside.name + log.name.removeprefix(catalog.name)))


def _in_use(catalog: Path) -> PartDown:
    return PartDown(
        f"Another process has the catalog '{catalog}' open, for example 'drivefeed web'. Stop it, "
        "then restore.",
        part=Part.CATALOG,
    )


def _logs_of(catalog: Path) -> Iterator[Path]:
    for ending in ("-wal", "-shm", "-journal"):
        yield catalog.with_name(catalog.name + ending)


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?mode={mode}", uri=True, timeout=20)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
