"""Warm extraction processes, so that a file does not wait for a Python to start."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain.errors import Transient
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract.worker import COMMAND, ChildGone, Worker
from drivefeed.indexer.model import Limits, Rejected

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from pathlib import Path
    from typing import Self

    from drivefeed.indexer.model import Extraction

_TRIES: Final = 2


class ExtractionPool:
    """Reads files in child processes, at most `size` at a time.

    Whatever a file does to its process (crash, spin, eat memory) is a reason for that file; the
    process is replaced. A process that was killed from outside is replaced and the file is tried
    once more.

    Args:
        size: Processes at most.
        idle_seconds: An unused process ends after this long.
        files_per_process: A process is replaced after so many files.
        rss_bytes: A process that has grown beyond this is replaced.
        command: What is run, followed by our process id; it must speak `protocol`.
    """

    def __init__(
        self,
        *,
        size: int = 2,
        idle_seconds: float = 30.0,
        files_per_process: int = 500,
        rss_bytes: int = 256 << 20,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self._slots = asyncio.Semaphore(size)
        self._idle_seconds = idle_seconds
        self._files_per_process = files_per_process
        self._rss_bytes = rss_bytes
        self._command = tuple(command)
        self._idle: list[Worker] = []
        self._timers: dict[Worker, asyncio.TimerHandle] = {}
        self._endings: set[asyncio.Task[None]] = set()
        self._busy: set[Worker] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @property
    def pids(self) -> frozenset[int]:
        """Process ids of all children that are up."""
        return frozenset(worker.pid for worker in (*self._idle, *self._busy) if worker.alive)

    async def extract(
        self,
        path: Path,
        *,
        name: str,
        media_type: str | None = None,
        limits: Limits | None = None,
        only_count: bool = False,
    ) -> Extraction:
        """Read one file.

        Args:
            path: A local file that does not change meanwhile.
            name: Its name at the source; the extension counts where the content is silent.
            media_type: What the source says it is, if anything.
            limits: What it may use; `wall_seconds` count from when a process is free for it.
            only_count: Whether its pages are only counted; see `drivefeed.indexer.extract.count`.

        Raises:
            Rejected: The file can't be read.
            Transient: Its bytes, or a process, could not be had; nothing is known about the file.
            RuntimeError: The pool is closed.
        """
        async with self._slots:
            for _ in range(_TRIES):
                try:
                    return await self._once(
                        path,
                        name=name,
                        media_type=media_type,
                        limits=limits or Limits(),
                        only_count=only_count,
                    )
                except ChildGone:
                    continue
        raise Rejected(
            Reason.EXTRACTION_CRASHED, "The process that read it was killed twice. Retry it later."
        )

    async def aclose(self) -> None:
        """End all processes; files that are being read fail with `RuntimeError`."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        idle, self._idle = self._idle, []
        await asyncio.gather(
            *(worker.kill() for worker in list(self._busy)),
            *(worker.end() for worker in idle),
            *self._endings,
        )

    async def _once(self, path: Path, **wishes: Any) -> Extraction:
        worker = await self._take()
        self._busy.add(worker)
        healthy = False
        try:
            extraction = await worker.ask(path, **wishes)
            healthy = True
            return extraction
        except (Rejected, Transient):
            healthy = worker.usable
            raise
        except ChildGone:
            if self._closed:
                raise RuntimeError("The extraction pool was closed.") from None
            raise
        finally:
            self._busy.discard(worker)
            if healthy:
                self._give_back(worker)
            else:
                # Finished even if this task is cancelled once more.
                await asyncio.shield(self._keep(worker.kill()))

    async def _take(self) -> Worker:
        if self._closed:
            raise RuntimeError("The extraction pool is closed.")
        while self._idle:
            worker = self._idle.pop()
            self._timers.pop(worker).cancel()
            if worker.alive:
                return worker
            await worker.kill()
        return await Worker.start(self._command)

    def _give_back(self, worker: Worker) -> None:
        worn = worker.files >= self._files_per_process or worker.rss_bytes > self._rss_bytes
        if worn or self._closed:
            self._let_go(worker)
            return
        self._idle.append(worker)
        loop = asyncio.get_running_loop()
        self._timers[worker] = loop.call_later(self._idle_seconds, self._retire, worker)

    def _retire(self, worker: Worker) -> None:
        self._timers.pop(worker, None)
        self._idle.remove(worker)
        self._let_go(worker)

    def _let_go(self, worker: Worker) -> None:
        self._keep(worker.end())

    def _keep(self, ending: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(ending)
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)
        return task
