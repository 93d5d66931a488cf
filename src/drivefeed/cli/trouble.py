"""What stands in the way, as one sentence: errors that are no defects of ours."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import DrivefeedError
from drivefeed.domain.redact import redact
from drivefeed.domain.visible import visible_lines

if TYPE_CHECKING:
    from types import TracebackType

_CANNOT_WRITE = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EFBIG})
_CATALOG = {
    "locked": "The catalog is busy: another process has been writing to it for a while. Try again.",
    "unable to open": "The catalog cannot be opened. Check that the data folder belongs to you, "
    "or name another one with --data.",
    "readonly": "The catalog cannot be written. Check that the data folder belongs to you.",
    "not a database": "The catalog is damaged: its file is not a database. Restore it from a "
    "backup, or move the data folder away and start anew.",
    "malformed": "The catalog is damaged. Restore it from a backup, or move the data folder away "
    "and start anew.",
    "full": "The disk is full. Free some space; the work goes on by itself.",
    "disk i/o": "The catalog cannot be read or written: the disk reports an error.",
}


def sentence_of(error: BaseException) -> str | None:
    """Return an error in words, or None where it is a defect whose traceback somebody needs."""
    if isinstance(error, BaseExceptionGroup):
        found = [sentence_of(one) for one in error.exceptions]
        return found[0] if found and None not in found else None
    if isinstance(error, DrivefeedError):
        return str(error)
    if _is(error, "sqlalchemy.exc", "DBAPIError"):
        said = str(getattr(error, "orig", error))
        known = [words for key, words in _CATALOG.items() if key in said.casefold()]
        return known[0] if known else f"The catalog does not work: {said}."
    if _is(error, "httpx", "HTTPError"):
        return (
            f"The daemon did not answer ({type(error).__name__}: {error}). Try again, and look "
            "with 'drivefeed doctor' if it stays."
        )
    return _sentence_of_file(error) if isinstance(error, OSError) else None


def _sentence_of_file(error: OSError) -> str | None:
    if error.filename is not None:
        return f"'{error.filename}' cannot be used: {error.strerror}."
    if error.errno in _CANNOT_WRITE:
        # Files of our own are named above, so it is what the command prints to.
        return f"The output cannot be written: {error.strerror}."
    return None


def complain(words: str) -> None:
    """Write sentences to standard error, without secrets and without control characters."""
    sys.stderr.write(f"{visible_lines(redact(words))}\n")


def give_up_output() -> None:
    """Print nothing more where it cannot be written, not even what is left in a buffer."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def tell_defect(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print the traceback of a defect without secrets; takes the place of ``sys.excepthook``."""
    complain("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"))


def _is(error: BaseException, module: str, name: str) -> bool:
    """Tell an error of a library that need not be loaded; one that is not raised none."""
    kind: Any = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(error, kind)
