"""What a Postgres says, as sentences for people: which of its errors pass, and who may end them.

None of them holds the URL, whose password nobody may read.
"""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from drivefeed.domain.errors import NeedsAttention, Part, PartDown
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy.exc import SQLAlchemyError

UNREACHABLE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, PoolTimeout)
"""What may be raised where a connection is made; `unreachable` puts it into words."""

_REFUSED = {
    "28000": "refuses the user of database_url",
    "28P01": "refuses the password of database_url",
    "3D000": "has no database of the name in database_url",
    "42501": "does not let the user of database_url read or write drivefeed's tables",
}
_PASSING = {
    "40001": "The transaction and another one got into each other's way",
    "40P01": "The transaction and another one waited for each other",
    "55P03": "A lock was not to be had in time",
    "57014": "A statement took longer than database.statement_seconds",
    "25P03": "A transaction stood still for longer than database.idle_seconds",
    "53100": "The disk of the catalog's database is full",
    "53200": "The catalog's database is out of memory",
    "53300": "The catalog's database has no connection left; lower database.connections",
    "57P01": "The catalog's database is being shut down",
    "57P02": "The catalog's database crashed and starts again",
    "57P03": "The catalog's database is starting or being shut down",
    "25006": "The catalog's database is read-only, as a standby is",
}
_READ_ONLY = "25006"
_CONNECTION_CLASS = "08"
_BY_ITSELF = "it goes on by itself."
_AGAIN = f"so nothing was recorded and work waits; {_BY_ITSELF}"


def translated(error: SQLAlchemyError, *, writes: bool = True) -> PartDown | None:
    """Return what an error means for the rest of the house, or None for a defect."""
    if not isinstance(error, DBAPIError):
        return None
    code = str(getattr(error.orig, "sqlstate", None) or "")
    if code in _REFUSED:
        return _refused(code)
    if code == _READ_ONLY and not writes:
        return None
    if code in _PASSING:
        return PartDown(f"{_PASSING[code]}, {_AGAIN}", part=Part.CATALOG)
    if error.connection_invalidated or code.startswith(_CONNECTION_CLASS):
        return PartDown(
            "The connection to the catalog's database was cut. Whether the last commit was "
            "made is looked up when work goes on, which it does by itself.",
            part=Part.CATALOG,
        )
    return None


def timed_out(*, commits: bool) -> PartDown:
    """Return the sentence for a statement to which the database answered nothing at all.

    Its own limits end a statement first, so it hangs, or the network does.

    Args:
        commits: whether it was the commit, of which it is not known whether it was made.
    """
    words = f"so nothing was recorded and work waits; {_BY_ITSELF}"
    if commits:
        words = f"and whether the last commit was made is looked up when work goes on; {_BY_ITSELF}"
    return PartDown(
        f"The catalog's database did not answer within database.statement_seconds, {words}",
        part=Part.CATALOG,
    )


def unreachable(error: BaseException) -> PartDown | NeedsAttention:
    """Return the sentence for a connection that could not be made; never with the URL in it."""
    code = str(getattr(error, "sqlstate", None) or "")
    if code in _REFUSED:
        return _refused(code)
    if code in _PASSING:
        return PartDown(f"{_PASSING[code]}, {_AGAIN}", part=Part.CATALOG)
    if isinstance(error, asyncpg.exceptions.ClientConfigurationError):
        return NeedsAttention(
            "database_url cannot be used; look at its host, port and parameters (sslmode, "
            "sslrootcert …).",
            reason=Reason.MISCONFIGURED,
        )
    return PartDown(
        f"The catalog's database does not answer ({_words(error)}), {_AGAIN}", part=Part.CATALOG
    )


def _words(error: BaseException) -> str:
    if isinstance(error, ssl.SSLError):
        return f"its certificate or TLS is not accepted: {error.reason or type(error).__name__}"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    if isinstance(error, PoolTimeout):
        return "all connections of this process are in use; see database.connections"
    return "it took too long" if isinstance(error, TimeoutError) else type(error).__name__


def _refused(code: str) -> PartDown:
    """A person has to repair it; but it is no fault of the file in hand, so no file may ask."""
    return PartDown(
        f"The catalog's database {_REFUSED[code]}. Repair it there, or change database_url.",
        part=Part.CATALOG,
    )
