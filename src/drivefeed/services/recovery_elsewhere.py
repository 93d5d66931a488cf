"""What other backends hold, compared with a restored catalog as far as their contract lets us ask.

A version is looked up by its key, and its job is asked for. One that search should show and that
its backend does not show may have been removed in the time that was lost, which nothing tells, so
it is imported again. Which further rounds a backend holds is nothing that it can be asked.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from drivefeed.catalog import restoring
from drivefeed.catalog.elsewhere import settled_elsewhere
from drivefeed.domain.errors import NeedsAttention, PartDown, Permanent, Throttled, Transient
from drivefeed.domain.identity import idempotency_key
from drivefeed.domain.redact import redact
from drivefeed.domain.words import count_of
from drivefeed.ports import BackendState

if TYPE_CHECKING:
    from drivefeed.catalog.elsewhere import Elsewhere
    from drivefeed.catalog.engine import Catalog
    from drivefeed.stages.backends import Backends

AT_ONCE: Final = 200
"""Versions that are asked about in one tick of the schedule."""
PATIENCE_MS: Final = 60 * 60_000
"""A backend that cannot be asked for so long is left out, and the report says so."""


class OtherBackends:
    """Asks once about every version that is settled at another backend, some at a time.

    Attributes:
        is_over: whether all were asked about, or left out.
    """

    def __init__(self, catalog: Catalog, backends: Backends) -> None:
        self._catalog = catalog
        self._backends = backends
        self._after = ""
        self._waits_since: dict[str, int] = {}
        self._given_up: dict[str, str] = {}
        self._left_out: Counter[str] = Counter()
        self._asked = 0
        self.is_over = False

    async def look(self) -> int:
        """Ask about the next versions; return how many are to be imported again."""
        again = 0
        found = await settled_elsewhere(self._catalog, self._after, limit=AT_ONCE)
        for one in found:
            is_there = await self._is_there(one)
            if is_there is None:
                return again
            self._after = one.import_id
            if not is_there:
                detail = f"the backend '{one.backend}' did not have it after a restore"
                again += await restoring.import_again(
                    self._catalog, one.import_id, one.round, detail=detail
                )
        self.is_over = len(found) < AT_ONCE
        return again

    def report(self) -> tuple[str, ...]:
        """Return what was compared and what was not, as sentences; nothing without backends."""
        said = []
        if self._asked:
            said.append(
                f"{count_of(self._asked, 'version')} at other backends looked up by key; which "
                "further rounds those hold cannot be asked."
            )
        for name, count in self._left_out.items():
            said.append(
                f"{count_of(count, 'version')} at the backend '{name}' not compared: "
                f"{self._given_up[name]}"
            )
        return tuple(said)

    async def _is_there(self, one: Elsewhere) -> bool | None:
        """Whether a backend has a version, as far as can be known; None to ask again later."""
        if one.backend not in self._given_up:
            try:
                is_there = await self._has(one)
            except NeedsAttention as error:
                self._given_up[one.backend] = redact(str(error))
            except (PartDown, Throttled, Transient, Permanent) as error:
                now = self._catalog.clock.now()
                if now - self._waits_since.setdefault(one.backend, now) < PATIENCE_MS:
                    return None
                self._given_up[one.backend] = redact(str(error))
            else:
                self._waits_since.pop(one.backend, None)
                self._asked += 1
                return is_there
        self._left_out[one.backend] += 1
        return True

    async def _has(self, one: Elsewhere) -> bool:
        backend = self._backends.named(one.backend)
        job_id = await backend.find(idempotency_key(one.import_id, one.round))
        if job_id is None:
            return False
        status = await backend.status(job_id)
        if status.state is BackendState.DONE:
            return status.live or not one.shown
        return status.state is BackendState.WORKING
