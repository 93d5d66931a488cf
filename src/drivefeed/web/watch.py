"""Looks at the catalog once for everybody: counts for pages, and changes for those who listen.

Counting an org of 100,000 files takes about a second of one core. So counts are shared, and made
again when something happened, but never so often that they would take more than a tenth of the
time; a page shown in between has counts that are a few seconds old.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drivefeed.catalog.budgets import ToldBudget, budgets_told
from drivefeed.catalog.progress import Progress, progress_of
from drivefeed.catalog.recent import Lately, lately, youngest_event
from drivefeed.catalog.usage import Usage, usage_of
from drivefeed.domain.errors import DrivefeedError
from drivefeed.telemetry import log
from drivefeed.web.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drivefeed.catalog.engine import Catalog

LOOK_SECONDS: Final = 1.0
MOST_LISTENERS: Final = 100
_REST_FACTOR: Final = 10
"""After counting, so many times as long as it took nothing is counted."""
_CALM_FACTOR: Final = 5
"""So many times longer where no event was recorded; not all that changes counts leaves one."""
_CHEAP_SECONDS: Final = 0.05
"""What takes no longer is counted whenever somebody asks."""
_MOST_ORGS: Final = 200

_log = log("web")


@dataclass(frozen=True, slots=True)
class View:
    """How an org stands.

    Attributes:
        number: rises from view to view.
        lately: by connection; quiet ones are missing.
        budgets: at Microsoft, of the org's accounts.
    """

    number: int
    progress: tuple[Progress, ...]
    lately: dict[str, Lately]
    usage: Usage
    budgets: tuple[ToldBudget, ...] = ()

    def says_the_same(self, other: View) -> bool:
        """Whether a reader would find nothing new in the other view."""

        def words(view: View) -> tuple[object, ...]:
            recent = {key: (one.latest, one.ended) for key, one in view.lately.items()}
            return view.progress, view.usage, recent, [_roughly(one) for one in view.budgets]

        return words(self) == words(other)


class Listener:
    """One who wants to know when the view of an org is another."""

    def __init__(self, watch: Watch, org_id: str) -> None:
        self._watch = watch
        self._org_id = org_id
        self._seen = -1
        self.woken = asyncio.Event()
        self.is_dismissed = False
        """Whether it gave its place to another org's."""

    async def next_view(self, seconds: float) -> View | None:
        """Return the next view that was not seen yet; None if there is none within the time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (self._watch.closed or self.is_dismissed):
                    view = self._watch.latest(self._org_id)
                    if view is not None and view.number > self._seen:
                        self._seen = view.number
                        return view
                    self.woken.clear()
                    await self.woken.wait()
        return None


@dataclass(slots=True)
class _Counted:
    view: View
    mark: int
    at: float
    took: float


class Watch:
    """Counts once for all pages and all listeners of this process.

    Attributes:
        closed: whether nobody is served any more.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._counted: dict[str, _Counted] = {}
        self._counting: dict[str, asyncio.Lock] = {}
        self._listeners: dict[str, dict[Listener, None]] = {}
        self._joined = asyncio.Event()
        self._numbers = 0
        self.looks = 0
        self.closed = False

    async def view(self, org_id: str) -> View:
        """Return how an org stands now, or stood a moment ago where counting takes long."""
        return await self._refreshed(org_id, await youngest_event(self._catalog))

    def latest(self, org_id: str) -> View | None:
        """Return the last view of an org, if there was any."""
        counted = self._counted.get(org_id)
        return counted.view if counted else None

    @contextmanager
    def listening(self, org_id: str) -> Iterator[Listener]:
        """Listen until the block ends, or the place is needed by an org that has fewer.

        Raises:
            Problem: too many listen.
        """
        if self.closed or not self._has_room_for(org_id):
            raise Problem(
                503,
                "too_many_listeners",
                "Too many pages follow the progress live.",
                remedy="Close some, or reload this page to see how far it is.",
                headers={"Retry-After": "30"},
            )
        listener = Listener(self, org_id)
        self._listeners.setdefault(org_id, {})[listener] = None
        self._joined.set()
        try:
            yield listener
        finally:
            self._forget(org_id, listener)

    def _has_room_for(self, org_id: str) -> bool:
        """Whether one more can listen; the oldest of the org with the most goes for it."""
        counts = {one: len(listeners) for one, listeners in self._listeners.items()}
        if sum(counts.values()) < MOST_LISTENERS:
            return True
        crowded = max(counts, key=lambda one: counts[one], default=org_id)
        # With as many or one less, two orgs would drive each other out in turn.
        if counts.get(crowded, 0) <= counts.get(org_id, 0) + 1:
            return False
        oldest = next(iter(self._listeners[crowded]))
        oldest.is_dismissed = True
        oldest.woken.set()
        self._forget(crowded, oldest)
        return True

    def _forget(self, org_id: str, listener: Listener) -> None:
        others = self._listeners.get(org_id, {})
        others.pop(listener, None)
        if not others:
            self._listeners.pop(org_id, None)

    async def run(self) -> None:
        """Look once a second while somebody listens, until closed."""
        while not self.closed:
            if not self._listeners:
                self._joined.clear()
                await self._joined.wait()
                continue
            began = time.monotonic()
            try:
                await self._look()
            except DrivefeedError as error:
                _log.warning("web_look_failed", error=str(error))
            except Exception as error:  # noqa: BLE001 - a locked database is no end of the pages
                _log.warning("web_look_failed", error=type(error).__name__)
            await self._catalog.clock.sleep(max(0.0, began + LOOK_SECONDS - time.monotonic()))

    def close(self) -> None:
        """Serve nobody any more; those who listen are let go at once."""
        self.closed = True
        self._joined.set()
        self._wake(*self._listeners)

    async def _look(self) -> None:
        self.looks += 1
        mark = await youngest_event(self._catalog)
        for org_id in list(self._listeners):
            before = self.latest(org_id)
            if await self._refreshed(org_id, mark) is not before:
                self._wake(org_id)

    def _wake(self, *org_ids: str) -> None:
        for org_id in org_ids:
            for listener in self._listeners.get(org_id, ()):
                listener.woken.set()

    async def _refreshed(self, org_id: str, mark: int) -> View:
        async with self._counting.setdefault(org_id, asyncio.Lock()):
            counted = self._counted.get(org_id)
            if counted is not None and not _is_due(counted, mark):
                return counted.view
            began = time.monotonic()
            view = await self._count(org_id)
            now = time.monotonic()
            self._counted[org_id] = _Counted(view, mark, now, now - began)
            if len(self._counted) > _MOST_ORGS:
                self._forget_oldest()
            return view

    async def _count(self, org_id: str) -> View:
        progress = await progress_of(self._catalog, org_id=org_id)
        recent = await lately(self._catalog, org_id)
        (usage,) = await usage_of(self._catalog, org_id)
        budgets = await budgets_told(self._catalog, org_id)
        fresh = View(self._numbers + 1, tuple(progress), recent, usage, tuple(budgets))
        before = self.latest(org_id)
        if before is not None and before.says_the_same(fresh):
            return before
        self._numbers += 1
        return fresh

    def _forget_oldest(self) -> None:
        oldest = min(self._counted, key=lambda org_id: self._counted[org_id].at)
        del self._counted[oldest]
        if not self._counting[oldest].locked():
            del self._counting[oldest]


def _roughly(told: ToldBudget) -> tuple[object, ...]:
    """Return what of a budget is news: a tenth more or less used, a closure, somebody waiting."""
    one = told.standing
    tenths = 10 * one.used_minute // max(1, one.per_minute)
    return (tuple(told.accounts), tenths, one.closed_ms > 0, bool(one.waiting), one.is_shared)


def _is_due(counted: _Counted, mark: int) -> bool:
    if counted.took < _CHEAP_SECONDS:
        return True
    calm = 1 if mark != counted.mark else _CALM_FACTOR
    return time.monotonic() - counted.at >= counted.took * _REST_FACTOR * calm
