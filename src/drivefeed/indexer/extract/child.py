"""The process that reads files: `python -m drivefeed.indexer.extract.child PARENT_PID`.

It takes requests on standard input until that closes. It has no way to harm the daemon: its memory,
its processor time and its wall time are limited by the kernel, its environment holds no secrets, it
writes no files, and it dies with its parent.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import gc
import os
import resource
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract import protocol
from drivefeed.indexer.extract.count import count_file
from drivefeed.indexer.extract.readers import read_file
from drivefeed.indexer.model import Limits, Page, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from drivefeed.indexer.model import Extraction

    Read = Callable[..., Extraction]

_PR_SET_PDEATHSIG: Final = 1
_FRAME_CHARACTERS: Final = 64 * 1024
_PART_CHARACTERS: Final = 1 << 20
_STDERR_BYTES: Final = 1 << 20
# The parent kills at the deadline; this bounds a child whose parent is stopped, or is gone where
# the kernel sends no signal for that.
_ALARM_GRACE_SECONDS: Final = 10


def main(read: Read = read_file) -> int:
    """Serve requests until standard input ends.

    Args:
        read: Reads one file; takes what `read_file` takes.
    """
    _tie_to_parent(int(sys.argv[1]))
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_STDERR_BYTES, _STDERR_BYTES))
    os.nice(5)  # people's requests and the event loop come first
    # Whatever a library prints goes to standard error, not between our frames.
    with os.fdopen(os.dup(1), "wb") as out, os.fdopen(os.dup(0), "rb") as requests:
        os.dup2(2, 1)
        while (request := _next_request(requests)) is not None:
            if not _serve(request, read, out):
                return 1
    return 0


def _tie_to_parent(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before we asked to follow
        os._exit(1)


def _next_request(requests: BinaryIO) -> protocol.Request | None:
    head = requests.read(protocol.LENGTH.size)
    if len(head) < protocol.LENGTH.size:
        return None
    (length,) = protocol.LENGTH.unpack(head)
    return protocol.decode_request(requests.read(length))


def _serve(request: protocol.Request, read: Read, out: BinaryIO) -> bool:
    """Answer one request; false when this process must not be used again."""
    limits = request.limits
    _set_limits(limits)
    signal.alarm(int(limits.wall_seconds) + _ALARM_GRACE_SECONDS)
    spent = False
    try:
        extraction = (count_file if request.only_count else read)(
            Path(request.path),
            name=request.name,
            media_type=request.media_type,
            limits=limits,
            more_time=partial(_take_more_time, limits, out),
        )
        out.writelines(protocol.frame(protocol.encode(answer)) for answer in _answers(extraction))
    except Exception as error:  # noqa: BLE001 - a bug of a library is the file's fate, not ours
        verdict = _verdict(error, request)
        spent = verdict.spent
        out.write(protocol.frame(protocol.encode(verdict)))
    out.flush()
    signal.alarm(0)
    gc.collect()
    return not spent


def _verdict(error: Exception, request: protocol.Request) -> protocol.Refused | protocol.Unreadable:
    if isinstance(error, Rejected):
        return protocol.Refused(error.reason, error.detail, spent=False)
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        megabytes = request.limits.memory_bytes >> 20
        detail = f"Reading it needs more than {megabytes:,} MB of memory."
        return protocol.Refused(Reason.OUT_OF_MEMORY, detail, spent=True)
    if isinstance(error, OSError):  # the disk's fault or ours, not the file's
        why = f"{error.strerror or error} ({request.name})"
        return protocol.Unreadable(f"The copy to be read could not be opened: {why}.")
    if isinstance(error, ImportError):
        return protocol.Unreadable(
            f"drivefeed could not load what reads such files: {str(error)[:500]}. If that stays, "
            "repair the installation; 'drivefeed doctor' looks at it.",
            spent=True,
        )
    detail = f"The reader failed on it: {type(error).__name__}: {error}"[:500]
    return protocol.Refused(Reason.EXTRACTION_CRASHED, detail, spent=True)


def _set_limits(limits: Limits) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _lower(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + limits.cpu_seconds)
    _lower(resource.RLIMIT_DATA, limits.memory_bytes)
    if sys.platform == "linux":  # macOS has the constant, and refuses the call
        _lower(resource.RLIMIT_AS, limits.memory_bytes)


def _take_more_time(limits: Limits, out: BinaryIO) -> None:
    """Raise our own limits, and tell the parent, which counts how often."""
    out.write(protocol.frame(protocol.encode(protocol.Longer())))
    out.flush()
    seconds = int(limits.ocr_page_seconds)
    soft, _ = resource.getrlimit(resource.RLIMIT_CPU)
    _lower(resource.RLIMIT_CPU, soft + seconds)
    signal.alarm(signal.alarm(0) + seconds)


def _lower(kind: int, wanted: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(
        kind, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard)
    )


def _answers(extraction: Extraction) -> Iterator[protocol.Answer]:
    batch: list[Page] = []
    size = 0
    for whole in extraction.pages:
        page = whole
        if len(page.text) > _PART_CHARACTERS:
            if batch:
                yield protocol.Pages(tuple(batch))
                batch, size = [], 0
            *parts, last = _cut(page.text)
            yield from map(protocol.Part, parts)
            page = replace(page, text=last)
        batch.append(page)
        size += len(page.text)
        if size >= _FRAME_CHARACTERS:
            yield protocol.Pages(tuple(batch))
            batch, size = [], 0
    if batch:
        yield protocol.Pages(tuple(batch))
    yield protocol.Done(
        media_type=extraction.media_type,
        page_count=extraction.page_count,
        page_count_is_estimate=extraction.page_count_is_estimate,
        title=extraction.title,
        language=extraction.language,
        unread_pages=extraction.unread_pages,
        rss_bytes=_rss_bytes(),
    )


def _cut(text: str) -> list[str]:
    return [text[i : i + _PART_CHARACTERS] for i in range(0, len(text), _PART_CHARACTERS)]


def _rss_bytes() -> int:
    """Measure resident memory now; its peak where /proc is absent."""
    try:
        resident = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return int(resident) * resource.getpagesize()


if __name__ == "__main__":
    sys.exit(main())
