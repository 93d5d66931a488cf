"""One child process as the pool sees it: ask, read the answer, or learn how it died."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from drivefeed.domain.errors import Transient
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract import protocol
from drivefeed.indexer.model import Extraction, Page, Rejected

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from drivefeed.indexer.model import Limits

COMMAND: Final = (sys.executable, "-P", "-m", "drivefeed.indexer.extract.child")
_SOURCE_ROOT: Final = Path(__file__).parents[3]
# What native allocators print before they abort.
_ALLOCATION_FAILED: Final = ("memory allocation of", "bad_alloc", "MemoryError", "out of memory")
_KEPT_VARIABLES: Final = ("PATH", "LANG", "LC_ALL", "TMPDIR")
_END_SECONDS: Final = 5.0


class ChildGone(Exception):
    """The child was killed from outside before it answered."""


class Worker:
    """A started child; made by `Worker.start`.

    Attributes:
        files: Answered so far.
        rss_bytes: As the child last reported.
    """

    def __init__(self, process: asyncio.subprocess.Process, errors: BinaryIO) -> None:
        self._process = process
        self._errors = errors
        self._asked = False
        self._killed = False
        self._longer = 0  # how often OCR of the present file was given more time
        self.files = 0
        self.rss_bytes = 0

    @classmethod
    async def start(cls, command: Sequence[str]) -> Worker:
        """Start a child in a session of its own, with an environment that holds no secrets.

        Raises:
            Transient: The system has no room for another process now.
        """
        errors = _last_words_file()
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                str(os.getpid()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env=_environment(),
                start_new_session=True,
            )
        except OSError as error:
            errors.close()
            raise Transient(f"A process to read files could not be started: {error}.") from error
        except BaseException:
            errors.close()
            raise
        return cls(process, errors)

    @property
    def pid(self) -> int:
        """The child's process id, which is also its group's."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process is up."""
        return self._process.returncode is None

    @property
    def usable(self) -> bool:
        """Whether it is up and has answered all it was asked."""
        return self.alive and not self._asked

    async def ask(
        self,
        path: Path,
        *,
        name: str,
        media_type: str | None,
        limits: Limits,
        only_count: bool = False,
    ) -> Extraction:
        """Have one file read, or only its pages counted.

        Raises:
            Rejected: The child's verdict, or that of its death.
            Transient: The file's bytes could not be read from disk.
            ChildGone: It was killed from outside.
        """
        request = protocol.Request(str(path), name, media_type, limits, only_count)
        self._longer = 0
        try:
            async with asyncio.timeout(limits.wall_seconds) as deadline:
                try:
                    return await self._exchange(request, deadline)
                except (asyncio.IncompleteReadError, ConnectionError):
                    code = await self._process.wait()
        except TimeoutError:
            raise Rejected(
                Reason.EXTRACTION_TIMEOUT,
                "Reading it took longer than"
                f" {limits.wall_seconds + self._added(limits):g} seconds.",
            ) from None
        raise self._cause_of_death(code, limits)

    async def end(self) -> None:
        """Let it go: close its input, and kill its group if it does not end by itself."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            await self.kill()
        self._errors.close()

    async def kill(self) -> None:
        """Kill the child and whatever it started, and wait until it is reaped."""
        if self._killed:  # its number may be another's by now
            await self._process.wait()
            return
        self._killed = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()
        self._errors.close()

    def _added(self, limits: Limits) -> float:
        return self._longer * limits.ocr_page_seconds

    def _give_time(self, limits: Limits, deadline: asyncio.Timeout) -> None:
        when = deadline.when()
        # A child that a file has taken over may ask as often as it likes.
        if self._longer < limits.ocr_pages and when is not None:
            self._longer += 1
            deadline.reschedule(when + limits.ocr_page_seconds)

    async def _exchange(self, request: protocol.Request, deadline: asyncio.Timeout) -> Extraction:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        self._asked = True
        stdin.write(protocol.frame(protocol.encode(request)))
        await stdin.drain()
        pages: list[Page] = []
        parts: list[str] = []
        while True:
            (length,) = protocol.LENGTH.unpack(await stdout.readexactly(protocol.LENGTH.size))
            match protocol.decode_answer(await stdout.readexactly(length)):
                case protocol.Part(text):
                    parts.append(text)
                case protocol.Pages(more):
                    first, *others = more
                    if parts:
                        first = replace(first, text="".join((*parts, first.text)))
                        parts.clear()
                    pages += (first, *others)
                case protocol.Longer():
                    self._give_time(request.limits, deadline)
                case protocol.Refused() | protocol.Unreadable() as no:
                    self.files += 1
                    self._asked = no.spent
                    if no.spent:
                        await self._process.wait()
                    raise _error_of(no)
                case protocol.Done() as done:
                    self.files += 1
                    self._asked = False
                    self.rss_bytes = done.rss_bytes
                    return Extraction(
                        media_type=done.media_type,
                        pages=tuple(pages),
                        page_count=done.page_count,
                        page_count_is_estimate=done.page_count_is_estimate,
                        title=done.title,
                        language=done.language,
                        unread_pages=done.unread_pages,
                    )

    def _cause_of_death(self, code: int, limits: Limits) -> Exception:
        if -code in (signal.SIGKILL, signal.SIGTERM):
            return ChildGone()
        if -code in (signal.SIGXCPU, signal.SIGALRM):
            return Rejected(
                Reason.EXTRACTION_TIMEOUT,
                f"Reading it took more than {limits.cpu_seconds + self._added(limits):g} seconds"
                " of processor time.",
            )
        last_words = self._last_words()
        if any(sign in last_words for sign in _ALLOCATION_FAILED):
            megabytes = limits.memory_bytes >> 20
            return Rejected(
                Reason.OUT_OF_MEMORY, f"Reading it needs more than {megabytes:,} MB of memory."
            )
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return Rejected(Reason.EXTRACTION_CRASHED, f"The process that read it ended with {how}.")

    def _last_words(self) -> str:
        size = os.fstat(self._errors.fileno()).st_size
        raw = os.pread(self._errors.fileno(), 4096, max(0, size - 4096))
        return raw.decode("utf-8", errors="replace")


def _last_words_file() -> BinaryIO:
    try:
        return tempfile.TemporaryFile()
    except OSError:  # a full disk costs the last words, not the file
        return Path(os.devnull).open("w+b")


def _environment() -> dict[str, str]:
    kept = {key: os.environ[key] for key in _KEPT_VARIABLES if key in os.environ}
    return kept | {"PYTHONPATH": str(_SOURCE_ROOT), "OMP_NUM_THREADS": "1"}


def _error_of(no: protocol.Refused | protocol.Unreadable) -> Rejected | Transient:
    if isinstance(no, protocol.Refused):
        return Rejected(no.reason, no.detail)
    return Transient(no.detail)
