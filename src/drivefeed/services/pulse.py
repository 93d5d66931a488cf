"""Whether this process does its work: what a health check asks.

A part that is down is no illness of this process: it waits, says so, and goes on by itself; to
restart it would help nobody. Something of its own that no longer turns is one.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from drivefeed.catalog.examination import answers
from drivefeed.domain.errors import Part, PartDown

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.services.relay import Relay
    from drivefeed.services.schedule import Schedule
    from drivefeed.services.workers import Workers
    from drivefeed.stages.breaker import Breakers

SILENT_SECONDS = 60.0
"""After this time without a turn the relay or the schedule counts as stuck."""
_CATALOG_SECONDS = 2.0


class Pulse:
    """What of this process turns, and what it waits for."""

    def __init__(
        self,
        catalog: Catalog,
        breakers: Breakers,
        *,
        relay: Relay,
        schedule: Schedule,
        workers: Workers,
    ) -> None:
        self._catalog = catalog
        self._breakers = breakers
        self._relay = relay
        self._schedule = schedule
        self._workers = workers

    async def stuck(self) -> dict[str, str]:
        """Return what does not turn any more, each with a sentence; nothing where all is well."""
        found = {}
        waits_for_catalog = not await self.catalog_answers()
        if not waits_for_catalog:
            now = time.monotonic()
            turns = {"relay": self._relay.turned_at, "schedule": self._schedule.beat_at}
            for name, at in turns.items():
                if now - at > SILENT_SECONDS:
                    found[name] = f"The {name} has not turned for {now - at:.0f} seconds."
        ended = self._workers.ended
        if ended:
            names = ", ".join(sorted(ended))
            found["workers"] = f"No worker takes jobs of these queues: {names}."
        return found

    async def catalog_answers(self) -> bool:
        """Whether the catalog can be asked; where not, its breaker says so."""
        try:
            async with asyncio.timeout(_CATALOG_SECONDS):
                await answers(self._catalog)
        except TimeoutError:
            self._breakers.note(Part.CATALOG, "The catalog's database does not answer in time.")
        except PartDown as error:
            self._breakers.note(Part.CATALOG, str(error))
        else:
            return Part.CATALOG not in self._breakers.open_parts()
        return False
