"""The embedded ingestion backend, answering late, wrongly or not at all."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from enum import StrEnum
from typing import Any

from drivefeed.backends.embedded import EmbeddedBackend
from drivefeed.domain.errors import Part, PartDown
from drivefeed.ports import BackendState, BackendStatus

_SOON_MS = 200


class Way(StrEnum):
    """How the backend behaves."""

    WELL = "well"
    DOWN = "down"
    SLOW = "slow"
    FORGETS = "unknown job"
    OUT_OF_ORDER = "answers out of order"


class FaultyBackend(EmbeddedBackend):
    """Behaves as :attr:`way` says; each job is forgotten, or told wrongly, a few times at most."""

    way = Way.WELL
    slow_seconds = 1.0
    forgotten: set[str]
    told: dict[str, int]

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.forgotten = set()
        self.told = {}

    async def _behave(self) -> None:
        if self.way is Way.DOWN:
            raise PartDown("The backend does not answer.", part=Part.BACKEND)
        if self.way is Way.SLOW:
            await asyncio.sleep(self.slow_seconds)

    async def submit(self, submission: Any) -> str:
        await self._behave()
        return await super().submit(submission)

    async def find(self, key: str) -> str | None:
        await self._behave()
        return await super().find(key)

    async def status(self, job_id: str) -> BackendStatus:
        await self._behave()
        found = await super().status(job_id)
        if self.way is Way.FORGETS and job_id not in self.forgotten:
            self.forgotten.add(job_id)
            return BackendStatus(BackendState.UNKNOWN)
        if self.way is Way.OUT_OF_ORDER and found.state is BackendState.DONE:
            # What was asked earlier is answered later: the progress goes back.
            self.told[job_id] = self.told.get(job_id, 0) + 1
            if self.told[job_id] <= 2:
                progress = 90 // self.told[job_id]
                early = BackendStatus(BackendState.WORKING, progress=progress)
                return replace(early, again_after_ms=_SOON_MS)
        return found
