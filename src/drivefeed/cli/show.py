"""The demo while it runs: looks at the catalog, draws, and does what keys ask for."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from drivefeed.catalog.control import retry_imports
from drivefeed.catalog.listing import list_files
from drivefeed.catalog.progress import Progress, Standing, being_withdrawn, progress_of
from drivefeed.cli.ending import Ending
from drivefeed.cli.happenings import Happenings
from drivefeed.cli.keys import single_keys
from drivefeed.cli.pace import Pace
from drivefeed.cli.scene import Lately, Scene
from drivefeed.cli.screen import TerminalScreen
from drivefeed.cli.status import limits_of
from drivefeed.cli.words import count_of
from drivefeed.domain.errors import PartDown
from drivefeed.domain.reasons import Reason
from drivefeed.services.certificate import certify

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.cli.scene import Display
    from drivefeed.cli.simulator import Simulator
    from drivefeed.daemon import Daemon

SLOW_SECONDS: Final = 1.5
_LOOK_SECONDS = 0.25
_FILES_SECONDS = 0.5
_FILES_SHARE = 20
"""All files are read at most so rarely that it takes a twentieth of the time."""
_CALM_LOOKS = 3
_LATELY = 50
_NOTE = """# Added while the demo ran, number {number}

This note was written by the demo at {at}, to give the stages something to do. Nobody has read the
numbers on valve {number} since the last inspection of the boiler room.
"""


class Show:
    """Watches a daemon, and lets a person interfere.

    Args:
        is_sample: whether the folder is ours, so that documents may be added to it.
    """

    def __init__(
        self, daemon: Daemon, sim: Simulator, served: Path, display: Display, *, is_sample: bool
    ) -> None:
        self._daemon = daemon
        self._catalog = daemon.parts.catalog
        self._sim = sim
        self._display = display
        self._is_sample = is_sample
        self._scene = Scene(served)
        self._ending = Ending()
        self._pace = Pace()
        self._happenings = Happenings()
        self._lately: deque[Lately] = deque(maxlen=_LATELY)
        self._wake = asyncio.Event()
        self._keys: deque[str] = deque()
        self._pausing: asyncio.Task[None] | None = None
        self._quits = False
        self._waits_for_first = False
        self._refusals = 0
        self._refused: set[str] = set()
        self._files_due = 0.0
        self._began = time.monotonic()
        self._began_at = self._catalog.clock.now()

    async def go_on(self, running: asyncio.Task[None]) -> None:
        """Show what happens until somebody ends it."""
        await self._watch(running, ends=False)

    async def once(self, running: asyncio.Task[None]) -> None:
        """Show what happens until every file has its outcome, and compare all parts then.

        Downloads that were refused because the demo asked for it are retried before.
        """
        await self._watch(running, ends=True)
        if self._refusals and not self._is_over(running):
            await self.clear()
            await self._watch(running, ends=True)
        if not self._is_over(running):
            # Between looks at all files the last ones may have come to their end untold.
            await self._look_at_files(time.monotonic())
            self._scene.lately = list(self._lately)
            self._display.show(self._scene)
            parts = self._daemon.parts
            rounds = parts.index.rounds()
            self._ending.certificate = await certify(
                parts.catalog, parts.source, parts.store, rounds
            )

    def close(self) -> None:
        """Leave the last picture; can be called twice."""
        self._display.close()

    def ending(self, *, interrupted: bool) -> Ending:
        """Return what became of it."""
        self._ending.refused = sorted(self._refused)
        self._ending.interrupted = interrupted or self._quits
        self._ending.found = list(self._scene.found)
        return self._ending

    @property
    def moves(self) -> bool:
        """Whether files were on their way at the last look."""
        return self._scene.moving > 0

    def _is_over(self, running: asyncio.Task[None]) -> bool:
        return self._quits or running.done()

    async def _watch(self, running: asyncio.Task[None], *, ends: bool) -> None:
        running.add_done_callback(lambda _: self._wake.set())
        calm = 0
        with (
            single_keys(self._press) if self._has_keys else nullcontext(enter_result=False) as keys
        ):
            while not self._is_over(running):
                await self._look(has_keys=keys)
                calm = calm + 1 if await self._is_at_rest() else 0
                if ends and calm >= _CALM_LOOKS:
                    break
                await self._wait()
        if self._pausing is not None:
            await self._pausing

    @property
    def _has_keys(self) -> bool:
        return isinstance(self._display, TerminalScreen)

    def _press(self, key: str) -> None:
        self._keys.append(key)
        self._wake.set()

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                await self._wake.wait()
        self._wake.clear()
        while self._keys:
            await self._do(self._keys.popleft().lower())

    async def _do(self, key: str) -> None:
        match key:
            case "f":
                await self.fail()
            case "c":
                await self.clear()
            case "w":
                self._stop_or_start_workers()
            case "s":
                self._daemon.pace_seconds = 0.0 if self._daemon.pace_seconds else SLOW_SECONDS
            case "n" if self._is_sample:
                await asyncio.to_thread(self._add_note)
            case "q":
                self._quits = True

    async def fail(self) -> None:
        """Let the next download be refused; where none is to come, add a document."""
        self._refusals += 1
        await self._sim.refuse_downloads(1)
        if self._is_sample and not self._scene.steps()["to be copied"]:
            await asyncio.to_thread(self._add_note)

    async def clear(self) -> None:
        """Refuse nothing any more, and try again what was refused."""
        await self._sim.accept_downloads()
        self._refusals = 0
        refused = await list_files(
            self._catalog, standing=Standing.FAILED, reason=Reason.DOWNLOAD_FORBIDDEN
        )
        await retry_imports(self._catalog, [one.import_id for one in refused if one.import_id])
        paths = [one.path for one in refused]
        self._refused.update(paths)
        self._ending.retried += paths

    def _stop_or_start_workers(self) -> None:
        if self._daemon.workers_paused:
            self._daemon.resume_workers()
        elif self._pausing is None or self._pausing.done():
            self._pausing = asyncio.create_task(self._daemon.pause_workers())

    def _add_note(self) -> None:
        folder = self._scene.served / "Notes"
        folder.mkdir(exist_ok=True)
        number = len(list(folder.iterdir())) + 1
        while (path := folder / f"Added while running {number}.md").exists():
            number += 1
        at = datetime.fromtimestamp(self._catalog.clock.now() / 1000, tz=UTC).isoformat()
        path.write_text(_NOTE.format(number=number, at=at), encoding="utf-8")

    async def _look(self, *, has_keys: bool) -> None:
        self._sim.check()
        now = time.monotonic()
        scene = self._scene
        scene.found = await progress_of(self._catalog)
        scene.limits = await limits_of(self._catalog)
        scene.seconds = self._ending.seconds = now - self._began
        self._pace.look(now, scene.ended)
        scene.files_a_second = self._pace.files_a_second
        stopped = self._daemon.workers_paused
        scene.seconds_left = None if stopped else self._pace.seconds_left(scene.moving)
        if not scene.count(Standing.SEARCHABLE):
            self._waits_for_first = True
        elif self._waits_for_first and self._ending.first_seconds is None:
            self._ending.first_seconds = scene.seconds
        if now >= self._files_due:
            await self._look_at_files(now)
        scene.lately = list(self._lately)
        scene.down = self._daemon.breakers.open_parts()
        scene.notices = await self._notices()
        scene.keys = self._what_keys_do() if has_keys else {}
        self._display.show(scene)

    async def _look_at_files(self, now: float) -> None:
        files = await list_files(self._catalog)
        took = time.monotonic() - now
        self._files_due = now + max(_FILES_SECONDS, took * _FILES_SHARE)
        clock = datetime.fromtimestamp(self._catalog.clock.now() / 1000, tz=UTC).astimezone()
        for one in self._happenings.look(files):
            self._lately.append(Lately(f"{clock:%H:%M:%S}", one))
        if self._refusals:
            self._refused |= {one.path for one in files if one.why == Reason.DOWNLOAD_FORBIDDEN}

    async def _notices(self) -> list[str]:
        notices = []
        if self._refusals:
            notices.append(await self._words_of_failure())
        if self._daemon.workers_paused:
            if self._pausing is not None and not self._pausing.done():
                words = "running steps are finished first"
            else:
                words = await self._words_of_queues()
            notices.append(f"[bold]Workers are stopped[/]: {words}.")
        if self._daemon.pace_seconds:
            notices.append(f"Slow: each step waits {self._daemon.pace_seconds:.1f} s first.")
        return notices

    async def _words_of_failure(self) -> str:
        try:
            left = await self._sim.refusals_left()
        except PartDown as error:
            return str(error)
        if left:
            words = f"the next {'download' if left == 1 else f'{left} downloads'} will be refused"
        else:
            words = f"{count_of(self._refusals, 'download')} refused"
        return f"[bold]Simulated failure[/]: {words} (403)."

    async def _words_of_queues(self) -> str:
        try:
            waiting = await self._daemon.jobs_waiting()
        except PartDown as error:
            return str(error)
        if not waiting:
            return "nothing waits yet"
        return "waiting in the queues: " + ", ".join(f"{n} {stage}" for stage, n in waiting.items())

    def _what_keys_do(self) -> dict[str, str]:
        keys = {"f": "fail"}
        if self._refusals:
            keys["c"] = "clear, retry"
        keys["w"] = "start workers" if self._daemon.workers_paused else "stop workers"
        keys["s"] = "fast" if self._daemon.pace_seconds else "slow"
        if self._is_sample:
            keys["n"] = "new file"
        return keys | {"q": "quit"}

    async def _is_at_rest(self) -> bool:
        """Whether everything was listed since the start, and nothing moves any more."""
        found = self._scene.found
        if not found or not all(self._has_ended(one) for one in found):
            return False
        return not await being_withdrawn(self._catalog)

    def _has_ended(self, one: Progress) -> bool:
        is_listed = (one.listed_at or 0) >= self._began_at
        is_stuck = one.waits_for_person or one.connection.paused
        return is_stuck or (one.at_rest and is_listed)
