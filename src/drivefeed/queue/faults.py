"""Turns Redis errors into sentences, and exceptions into text that may be kept in Redis."""

from __future__ import annotations

import traceback
from pathlib import Path
from urllib.parse import urlsplit

from redis import exceptions as errors

from drivefeed.domain.errors import Part, PartDown
from drivefeed.domain.redact import redact

_FRAMES = 12
_LINE_CHARS = 600
_TRACE_CHARS = 6_000
_REASON_CHARS = 1_000
_CONTAINER_MARK = Path("/.dockerenv")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}

_FULL = "Redis at {where} is full and refuses to store more; give it more memory (maxmemory)."
# The kind of error, a word of its text, and the sentence; the first that fits is used.
_SENTENCES: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    (
        (errors.AuthenticationError, errors.NoPermissionError),
        "",
        "Redis at {where} refuses our user or password; check the Redis URL in the settings.",
    ),
    (
        (errors.BusyLoadingError,),
        "",
        "Redis at {where} is still loading its data; it will answer soon.",
    ),
    ((errors.OutOfMemoryError,), "", _FULL),
    ((errors.ResponseError,), "OOM", _FULL),
    (
        (errors.ReadOnlyError,),
        "",
        "Redis at {where} is a read-only replica; the Redis URL must name the primary.",
    ),
    (
        (errors.ResponseError,),
        "MISCONF",
        (
            "Redis at {where} cannot write to its disk and therefore refuses to store anything; "
            "make room on the disk."
        ),
    ),
    (
        (errors.MaxConnectionsError,),
        "",
        "Too many requests wait for Redis at {where}; it answers too slowly.",
    ),
    (
        (TimeoutError, errors.TimeoutError),
        "",
        "Redis at {where} does not answer in time.{hint}",
    ),
    (
        (errors.ConnectionError, OSError),
        "",
        "Redis at {where} cannot be reached ({text}).{hint}",
    ),
)


def address(url: str) -> str:
    """Return where ``url`` points to, without user, password and options."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path
    return f"{parts.hostname or 'localhost'}:{parts.port or 6379}"


def queue_down(error: BaseException, url: str) -> PartDown:
    """Say in a sentence why Redis at ``url`` could not be used."""
    return PartDown(_sentence(error, url), part=Part.QUEUE)


def _sentence(error: BaseException, url: str) -> str:
    where = address(url)
    text = redact(str(error))
    for kinds, word, sentence in _SENTENCES:
        if isinstance(error, kinds) and word in text:
            return sentence.format(where=where, text=text, hint=_container_hint(url))
    return f"Redis at {where} refuses a command: {text}"


def _container_hint(url: str) -> str:
    if urlsplit(url).hostname in _LOOPBACK and _CONTAINER_MARK.exists():
        return (
            " We run in a container, where localhost is the container itself; name the host or "
            "service on which Redis runs."
        )
    return ""


def words_of(error: BaseException, url: str) -> str:
    """Say what is wrong with a worker: a sentence where Redis is the cause, else its own words."""
    if isinstance(error, (errors.RedisError, OSError)):
        return _sentence(error, url)
    return reason_of(error)


def reason_of(error: BaseException) -> str:
    """Return one line for the board's *failed reason*, without secrets."""
    text = redact(str(error)).strip() or type(error).__name__
    return text[:_REASON_CHARS]


def trace_of(error: BaseException) -> str:
    """Return the traceback of ``error`` for the board, bounded and without secrets.

    The last frames and the message are kept: that is where the fault is.
    """
    lines = traceback.format_exception(error, limit=-_FRAMES)
    # Secrets go first: half a token, cut off at the limit, would not be known as one.
    text = "\n".join(
        line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]} …"
        for line in redact("".join(lines)).splitlines()
    )
    return text if len(text) <= _TRACE_CHARS else f"… {text[-_TRACE_CHARS:]}"
