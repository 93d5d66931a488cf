"""The ports, wrapped: an effect that has no checkpoint right before and right after it is told.

What is wrapped are the classes behind the ports, so whoever makes one gets a wrapped one.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from drivefeed.domain.checkpoints import EFFECTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from durability.places import Places

PORTS: dict[str, tuple[str, ...]] = {
    "drivefeed.backends.embedded:EmbeddedBackend": (
        *("submit", "cancel", "remove", "set_live", "set_folders"),
    ),
    "drivefeed.backends.http:HttpBackend": (
        *("submit", "cancel", "remove", "set_live", "set_folders"),
    ),
    "drivefeed.stores.directory:DirectoryStore": ("put", "delete", "fetch", "abort_uploads"),
    "drivefeed.stores.s3:S3Store": ("put", "delete", "fetch", "abort_uploads"),
    "drivefeed.queue.bullmq:BullmqQueue": ("add", "set_generation", "clear"),
    "drivefeed.indexer.vectors.edge:EdgeIndex": (
        *("upsert", "set_live", "set_folders", "remove", "drop"),
    ),
    "drivefeed.sources.graph.subscriptions:GraphSubscriptions": (
        *("subscribe", "renew", "unsubscribe"),
    ),
    "drivefeed.services.token_store:CatalogTokenStore": ("save",),
    "drivefeed.notices.webhooks:WebhookChannel": ("send",),
}
DOWNLOAD = ("drivefeed.sources.graph.source:GraphSource", "download")


@dataclass
class _Steps:
    """What one task has passed: the effect announced, the one done, and how deep it is in one."""

    announced: str | None = None
    unsaid: tuple[str, str] | None = None
    depth: int = 0


@dataclass
class Watch:
    """Sees that each effect is announced before and told after, in the task that has it."""

    wrong: Callable[[str], None]
    _steps: WeakKeyDictionary[asyncio.Task[Any], _Steps] = field(default_factory=WeakKeyDictionary)

    def _of_task(self) -> _Steps:
        task = asyncio.current_task()
        assert task is not None
        return self._steps.setdefault(task, _Steps())

    def passes(self, name: str) -> None:
        """A checkpoint was passed."""
        effect, _, when = name.rpartition(".")
        if effect not in EFFECTS:
            return
        try:
            steps = self._of_task()
        except RuntimeError:  # no event loop, so no task and no port
            return
        if when == "before":
            self._told_late(steps, f"the checkpoint {name}")
            steps.announced = effect
        else:
            if steps.unsaid is not None and steps.unsaid[0] != effect:
                self.wrong(f"{steps.unsaid[1]} was announced as {steps.unsaid[0]}, told as {name}")
            steps.announced = steps.unsaid = None

    def _told_late(self, steps: _Steps, by: str) -> None:
        if steps.unsaid is not None:
            self.wrong(f"{steps.unsaid[1]}: no checkpoint after it, before {by}")
            steps.unsaid = None

    def begins(self, effect: str) -> _Steps:
        """An effect begins; one inside of another belongs to that."""
        steps = self._of_task()
        if not steps.depth:
            self._told_late(steps, effect)
            if steps.announced is None:
                self.wrong(f"{effect}: no checkpoint before it")
        steps.depth += 1
        return steps

    def ends(self, effect: str, steps: _Steps, *, done: bool) -> None:
        """An effect is over; one that failed has nothing to tell."""
        steps.depth -= 1
        if steps.depth:
            return
        steps.unsaid = (steps.announced or "nothing", effect) if done else None
        steps.announced = None

    def rests(self) -> None:
        """A unit of work is over, so nothing may be left to tell."""
        self._told_late(self._of_task(), "the end of the work")


def wrap_ports(places: Places) -> None:
    """Wrap every class behind a port, for the rest of this process."""
    watch = Watch(places.wrong)
    places.watchers.append(watch.passes)
    for dotted, methods in PORTS.items():
        kind = _class_of(dotted)
        for name in methods:
            setattr(kind, name, wrapped(getattr(kind, name), f"{kind.__name__}.{name}", watch))
    source = _class_of(DOWNLOAD[0])
    source.download = _wrapped_opening(source.download, "GraphSource.download", watch)
    runner = _class_of("drivefeed.stages.runner:Runner")
    runner._claim = _resting(runner._claim, watch)


def _class_of(dotted: str) -> Any:
    module, name = dotted.split(":")
    return getattr(importlib.import_module(module), name)


def wrapped(method: Any, effect: str, watch: Watch) -> Any:
    """Return a method that tells the watch of each call."""

    @functools.wraps(method)
    async def call(*given: Any, **named: Any) -> Any:
        steps = watch.begins(effect)
        done = False
        try:
            result = await method(*given, **named)
            done = True
            return result
        finally:
            watch.ends(effect, steps, done=done)

    return call


def _wrapped_opening(method: Any, effect: str, watch: Watch) -> Any:
    @asynccontextmanager
    async def opened(*given: Any, **named: Any) -> AsyncIterator[Any]:
        steps = watch.begins(effect)
        done = False
        try:
            async with method(*given, **named) as body:
                watch.ends(effect, steps, done=True)
                done = True
                yield body
        finally:
            if not done:
                watch.ends(effect, steps, done=False)

    return opened


def _resting(method: Any, watch: Watch) -> Any:
    """A worker's task takes one row after another: at each claim nothing may be left to tell."""

    @functools.wraps(method)
    async def claim(*given: Any, **named: Any) -> Any:
        watch.rests()
        return await method(*given, **named)

    return claim
