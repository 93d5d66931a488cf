"""The parent's end of :mod:`drivefeed.indexer.vectors.edge_child`."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import drivefeed
from drivefeed.domain.errors import DrivefeedError, NeedsAttention, Part, PartDown, Transient
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.indexer.vectors.identity import Identity

OPENING_SECONDS: Final = 60.0
"""How long opening may take; a log left by a crash is read again while the folder opens."""

CLOSING_SECONDS: Final = 5.0
"""How long the child may take to flush and end before it is killed; nothing answered is lost."""

SILENT_SECONDS: Final = 60.0
"""How long the child may owe answers and give none before it counts as hung, and is killed."""

_PROGRAM: Final = """
import sys
package_root = sys.argv.pop(1)
if package_root not in sys.path:
    sys.path.insert(0, package_root)
from drivefeed.indexer.vectors.edge_child import main
sys.exit(main(*sys.argv[1:]))
"""
"""What the child runs: the very package that runs here, installed or not."""


class ChildLink:
    """One running child process. After it ended, every call says so; make a new link then.

    Use :meth:`start` to make one.
    """

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process, self._folder = process, folder
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._ended: str | None = None
        self._hung = False
        self._heard_at = time.monotonic()
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, folder: Path, made_for: Identity) -> ChildLink:
        """Start a child on a folder and wait until the folder is open.

        Raises:
            NeedsAttention: another process has the folder, or it was made for another model.
            PartDown: the folder cannot be opened.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            _PROGRAM,
            str(Path(drivefeed.__file__).parents[1]),
            str(folder),
            made_for.model,
            str(made_for.dimension),
            made_for.provider,
            str(os.getpid()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        link = cls(process, folder)
        opened = link._expect(0)
        link._reading = asyncio.create_task(link._read(), name="vector index answers")
        try:
            async with asyncio.timeout(OPENING_SECONDS):
                await opened
        except TimeoutError as error:
            await link.close()
            raise PartDown(
                f"The vector index in {folder} did not open within {OPENING_SECONDS:.0f} seconds.",
                part=Part.INDEX,
            ) from error
        except BaseException:
            await link.close()
            raise
        return link

    @property
    def alive(self) -> bool:
        """False once the child has ended."""
        return self._ended is None

    async def call(self, method: str, *arguments: Any) -> Any:
        """Have the child do something and return its answer.

        Raises:
            PartDown: the child ended before it answered, or gave no answer to anybody for so long
                that it was killed; whether it did it is not known.
            Transient: the engine refused the call.
        """
        from drivefeed.indexer.vectors.edge_child import frame

        if self._ended is not None:
            raise PartDown(self._ended, part=Part.INDEX)
        if not self._waiting:
            self._heard_at = time.monotonic()
        self._number += 1
        number = self._number
        answer = self._expect(number)
        pipe = self._process.stdin
        assert pipe is not None
        pipe.write(frame([number, method, list(arguments)]))
        # A child that hangs reads nothing either, so the wait for room in the pipe is bounded too.
        sending = asyncio.ensure_future(pipe.drain())
        try:
            while not answer.done():
                left = self._heard_at + SILENT_SECONDS - time.monotonic()
                if left <= 0:
                    self._give_up()
                await asyncio.wait({answer}, timeout=max(left, 0.1))
        finally:
            sending.cancel()
            # The reader sees a broken pipe as well, and fails the answer with the sentence for it.
            await asyncio.gather(sending, return_exceptions=True)
        return answer.result()

    def _give_up(self) -> None:
        """Kill a child that hangs; its reader then fails all answers that are owed."""
        self._hung = True
        with suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> None:
        """Let the child finish what it was asked, flush and end; kill it if it does not."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        if self._reading is not None:
            await self._reading

    def _expect(self, number: int) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        return future

    async def _read(self) -> None:
        import msgspec

        from drivefeed.indexer.vectors.edge_child import LENGTH

        source = self._process.stdout
        assert source is not None
        try:
            while True:
                size = int.from_bytes(await source.readexactly(LENGTH), "big")
                number, value, error = msgspec.msgpack.decode(await source.readexactly(size))
                self._heard_at = time.monotonic()
                future = self._waiting.pop(number)
                if future.done():
                    continue  # its caller was cancelled
                if error is None:
                    future.set_result(value)
                else:
                    future.set_exception(_error(*error))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        code = await self._process.wait()
        how = (
            f"gave no answer for {SILENT_SECONDS:.0f} seconds and was ended"
            if self._hung
            else f"ended (exit code {code})"
        )
        self._ended = (
            f"The process of the vector index in {self._folder} {how}; "
            "it is started again with the next call."
        )
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(PartDown(self._ended, part=Part.INDEX))
        self._waiting.clear()


def _error(name: str, sentence: str) -> DrivefeedError:
    if name == NeedsAttention.__name__:
        return NeedsAttention(sentence, reason=Reason.MISCONFIGURED)
    if name == PartDown.__name__:
        return PartDown(sentence, part=Part.INDEX)
    return Transient(sentence)
