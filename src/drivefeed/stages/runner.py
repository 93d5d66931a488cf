"""The runner: claims what a delivery names, runs the stage, and commits what it says.

Workers believe the catalog, never the payload: a delivery only names a subject and a number. A
number that is no longer current does nothing.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from drivefeed.catalog import reminders
from drivefeed.catalog.documents import PAYLOAD_SCHEMA
from drivefeed.domain.errors import Part, PartDown, Throttled
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import redact
from drivefeed.ports import Stage
from drivefeed.stages.breaker import HOLDS, Breakers
from drivefeed.stages.outcome import Again, Ask
from drivefeed.telemetry import ATTEMPTS_FAILED, STAGE_SECONDS, log
from drivefeed.tracing import span

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.reminders import Claim
    from drivefeed.ports import Delivery
    from drivefeed.stages.outcome import Outcome
    from drivefeed.stages.stage import StageRun

T = TypeVar("T")

BUSY_MS = 60_000
RENEW_SECONDS = 15.0
MOST_STARTS = 5
"""A stage that was begun so often and never ended asks a person."""
MOST_STARTS_OF = {Stage.INDEX: 50}
"""Where the stage itself looks closer at what it was doing at the deaths."""
CATALOG_AGAIN_MS = 5_000
_CATALOG_AGAIN_SECONDS = 1.0
_HAND_BACK_SECONDS = 3.0

_PACED = frozenset({Stage.TRANSFER, Stage.SUBMIT, Stage.INDEX})

_log = log("runner")


class Runner:
    """Runs stages for deliveries. One per process.

    Args:
        owner: names the process in claims and heartbeats.
        pace_seconds: a wait before each run of a stage that works on a file, for demos.
    """

    def __init__(
        self, catalog: Catalog, breakers: Breakers, *, owner: str, pace_seconds: float = 0.0
    ) -> None:
        self.pace_seconds = pace_seconds
        self._catalog = catalog
        self._breakers = breakers
        self._owner = owner
        self._unknown_schemas: set[Any] = set()
        self._running: set[asyncio.Task[Any]] = set()

    async def at_rest(self, seconds: float) -> None:
        """Wait until no stage runs, for so long at most: those that were cancelled hand back."""
        if self._running:
            await asyncio.wait(set(self._running), timeout=seconds)

    def bind(self, stage: StageRun) -> Callable[[Delivery], Awaitable[dict[str, Any]]]:
        """Return what a queue's worker calls for each delivery of the stage."""

        async def run(delivery: Delivery) -> dict[str, Any]:
            import_id = delivery.payload.get("import_id")
            task = asyncio.current_task()
            assert task is not None  # coroutines run in tasks
            self._running.add(task)
            try:
                with span(stage.stage, import_id=import_id, job_id=delivery.job_id):
                    return await self._run(stage, delivery)
            finally:
                self._running.discard(task)

        return run

    async def _run(self, stage: StageRun, delivery: Delivery) -> dict[str, Any]:
        if delivery.payload.get("schema", PAYLOAD_SCHEMA) != PAYLOAD_SCHEMA:
            return self._left(delivery)
        subject_id = stage.subject_id(delivery.payload)
        number = int(delivery.payload["number"])
        claim = await self._lasting(lambda: self._claim(stage, subject_id, number))
        if claim is None:
            return {"outcome": "superseded"}
        started = time.monotonic()
        words = _log.bind(
            stage=stage.stage,
            subject_id=subject_id,
            import_id=delivery.payload.get("import_id"),
            job_id=delivery.job_id,
            attempt=delivery.attempt,
        )
        async with self._renewing(claim):
            outcome = await self._outcome(stage, claim, delivery, words)
            # Within: what cannot be written yet stays ours.
            if outcome is None:
                await self._lasting(lambda: self._let_go(claim), claim)
            else:
                await self._lasting(lambda: stage.commit(claim, outcome), claim)
        name = type(outcome).__name__.lower() if outcome is not None else "nothing"
        seconds = time.monotonic() - started
        STAGE_SECONDS.labels(stage.stage, name).observe(seconds)
        facts = _facts(outcome)
        words.info("stage_done", outcome=name, ms=round(seconds * 1000), **facts)
        return {"outcome": name, **facts}

    def _left(self, delivery: Delivery) -> dict[str, Any]:
        """Leave a delivery of another version; it comes again until somebody understands it."""
        schema = delivery.payload["schema"]
        if schema not in self._unknown_schemas:
            self._unknown_schemas.add(schema)
            _log.warning(
                "jobs_of_another_version",
                words=f"Jobs with schema {schema} wait for a worker of another version of "
                f"drivefeed; this one understands schema {PAYLOAD_SCHEMA}. Update it.",
            )
        return {"outcome": "another_version"}

    async def _holds(self, claim: Claim) -> bool:
        """Whether the claim is still held; yes where the catalog cannot say so."""
        try:
            async with self._catalog.read() as connection:
                return await reminders.is_held(connection, claim)
        except PartDown:
            return True

    async def _outcome(
        self, stage: StageRun, claim: Claim, delivery: Delivery, words: Any
    ) -> Outcome | None:
        if claim.starts > MOST_STARTS_OF.get(stage.stage, MOST_STARTS):
            return Ask(
                Reason.CRASHES_WORKER,
                f"The worker ended {claim.starts - 1} times during {stage.stage}.",
            )
        for part in stage.parts:
            if wait := self._breakers.wait_ms(part):
                return Again(wait, hold=HOLDS[part], detail=self._breakers.words(part))
        try:
            if self.pace_seconds and stage.stage in _PACED:
                await self._catalog.clock.sleep(self.pace_seconds)
            outcome = await stage.run(claim, delivery)
        except asyncio.CancelledError:
            # Where the catalog cannot be written, the row is freed when we are known to be gone.
            with suppress(PartDown, TimeoutError):
                async with asyncio.timeout(_HAND_BACK_SECONDS):
                    await asyncio.shield(self._hand_back(claim))
            raise
        except Throttled as error:
            return Again(
                int(error.seconds * 1000), hold=Reason.THROTTLED, detail=redact(str(error))
            )
        except PartDown as error:
            return self._part_down(error, words)
        except Exception as error:
            await self._failed(stage, claim, delivery, error)
            words.warning(
                "attempt_failed", error=redact(str(error)), error_type=type(error).__name__
            )
            raise
        for part in stage.parts:
            self._breakers.close(part)
        return outcome

    def _part_down(self, error: PartDown, words: Any) -> Again:
        said = redact(str(error))
        if error.part is Part.CATALOG:
            # Whoever writes next finds out whether it can be written again.
            self._breakers.note(error.part, said)
            words.warning("part_down", part=error.part, error=said)
            return Again(CATALOG_AGAIN_MS)
        if error.wait_ms is not None:
            words.warning("part_down", part=error.part, error=said, wait_ms=error.wait_ms)
            return Again(error.wait_ms, hold=HOLDS[error.part], detail=said)
        wait = self._breakers.trip(error.part, said)
        words.warning("part_down", part=error.part, error=said, wait_ms=wait)
        return Again(wait, hold=HOLDS[error.part], detail=said)

    async def _failed(
        self, stage: StageRun, claim: Claim, delivery: Delivery, error: Exception
    ) -> None:
        """A fault of the file: the queue tries again, or a person is asked after the last."""
        ATTEMPTS_FAILED.labels(stage.stage).inc()
        # A database's error goes on with the statement and all that it was given.
        said = redact(str(error)).partition("\n[SQL:")[0]
        if delivery.attempt < delivery.attempts:
            await self._lasting(lambda: stage.attempt_failed(claim, said, delivery), claim)
            return
        asking = Ask(Reason.ATTEMPTS_EXHAUSTED, f"{type(error).__name__}: {said}")
        await self._lasting(lambda: stage.commit(claim, asking), claim)

    async def _lasting(
        self, write: Callable[[], Awaitable[T]], claim: Claim | None = None
    ) -> T | None:
        """Repeat a commit until the catalog takes it; None where it had been taken already.

        Letting it fail would cost the file an attempt, and what was found out would be found out
        again. Nothing else can be done meanwhile, so holding the slot costs nothing.

        Args:
            claim: what the commit releases: a connection that was lost after the commit was made
                shows by that.
        """
        while True:
            try:
                written = await write()
            except PartDown as error:
                if error.part is not Part.CATALOG:
                    raise
                self._breakers.note(error.part, redact(str(error)))
                _log.warning("part_down", part=error.part, error=redact(str(error)))
                await asyncio.sleep(_CATALOG_AGAIN_SECONDS)
            else:
                self._breakers.calm(Part.CATALOG)
                return written
            if claim is not None and not await self._holds(claim):
                return None

    async def _claim(self, stage: StageRun, subject_id: str, number: int) -> Claim | None:
        now = self._catalog.clock.now()
        async with self._catalog.write("claim", beside=True) as connection:
            claim = await reminders.claim(
                connection,
                subject_id=subject_id,
                number=number,
                owner=self._owner,
                now=now,
                busy_ms=BUSY_MS,
            )
            if claim is not None and claim.stage != stage.stage:
                await reminders.release(connection, claim)
                return None
        return claim

    @asynccontextmanager
    async def _renewing(self, claim: Claim) -> AsyncIterator[None]:
        async def renew() -> None:
            while True:
                await asyncio.sleep(RENEW_SECONDS)
                until = self._catalog.clock.now() + BUSY_MS
                # It lasts for several renewals, so one that fails is made up for by the next.
                with suppress(PartDown):
                    async with self._catalog.write("renew", beside=True) as connection:
                        await reminders.renew(connection, claim, busy_until=until)

        renewal = asyncio.create_task(renew(), name=f"renew {claim.subject_id}")
        try:
            yield
        finally:
            renewal.cancel()
            await asyncio.gather(renewal, return_exceptions=True)

    async def _let_go(self, claim: Claim) -> None:
        async with self._catalog.write("release", beside=True) as connection:
            await reminders.release(connection, claim)

    async def _hand_back(self, claim: Claim) -> None:
        """Shutdown or cancellation: the stage is due again at once, without using an attempt."""
        async with self._catalog.write("hand_back", beside=True) as connection:
            await reminders.hand_back(connection, claim, now=self._catalog.clock.now())


def _facts(outcome: Outcome | None) -> dict[str, Any]:
    facts = {
        "event": getattr(outcome, "event", None),
        "reason": getattr(outcome, "reason", None) or getattr(outcome, "hold", None),
    }
    shown = {key: str(value) for key, value in facts.items() if value is not None}
    if "event" in shown:
        shown["happened"] = shown.pop("event")
    return shown
