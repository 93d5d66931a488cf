"""The runner: claims what a delivery names, runs the stage, and commits what it says.

Workers believe the catalog, never the payload: a delivery only names a subject and a number. A
number that is no longer current does nothing.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from drivefeed.catalog import reminders
from drivefeed.catalog.documents import PAYLOAD_SCHEMA
from drivefeed.domain.errors import Part, PartDown, Throttled
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import redact
from drivefeed.ports import Stage
from drivefeed.stages.breaker import HOLDS, Breakers
from drivefeed.stages.outcome import Again, Ask, Outcome
from drivefeed.telemetry import ATTEMPTS_FAILED, STAGE_SECONDS, log
from drivefeed.tracing import span

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.reminders import Claim
    from drivefeed.ports import Delivery

BUSY_MS = 60_000
RENEW_SECONDS = 15.0
MOST_STARTS = 5
CATALOG_AGAIN_MS = 5_000
_COMMIT_AGAIN_SECONDS = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Together shorter than a claim lasts, which nobody renews meanwhile."""

_PACED = frozenset({Stage.TRANSFER, Stage.SUBMIT, Stage.INDEX})

_log = log("runner")


class StageRun(Protocol):
    """One stage, bound to the parts it uses."""

    @property
    def stage(self) -> Stage:
        """The queue it serves."""
        ...

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts without which it cannot run."""
        ...

    def subject_id(self, payload: Mapping[str, Any]) -> str:
        """Return the subject that a delivery names."""
        ...

    async def run(self, claim: Claim, delivery: Delivery) -> Outcome | None:
        """Do the work and say what became of it; None where there was nothing to do."""
        ...

    async def commit(self, claim: Claim, outcome: Outcome) -> None:
        """Write an outcome and release the claim, in one transaction."""
        ...

    async def attempt_failed(self, claim: Claim, error: str, delivery: Delivery) -> None:
        """Record a failed attempt and release the claim."""
        ...


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

    def bind(self, stage: StageRun) -> Callable[[Delivery], Awaitable[dict[str, Any]]]:
        """Return what a queue's worker calls for each delivery of the stage."""

        async def run(delivery: Delivery) -> dict[str, Any]:
            import_id = delivery.payload.get("import_id")
            with span(stage.stage, import_id=import_id, job_id=delivery.job_id):
                return await self._run(stage, delivery)

        return run

    async def _run(self, stage: StageRun, delivery: Delivery) -> dict[str, Any]:
        if delivery.payload.get("schema", PAYLOAD_SCHEMA) != PAYLOAD_SCHEMA:
            return self._left(delivery)
        subject_id = stage.subject_id(delivery.payload)
        claim = await self._claim(stage, subject_id, int(delivery.payload["number"]))
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
        await self._commit(stage, claim, outcome, words)
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

    async def _commit(
        self, stage: StageRun, claim: Claim, outcome: Outcome | None, words: Any
    ) -> None:
        """Write what came out; where the catalog is down for a moment, again and again.

        The connection may have been lost after the commit was made: then the claim is released.
        """
        for wait in (*_COMMIT_AGAIN_SECONDS, None):
            try:
                if outcome is None:
                    await self._let_go(claim)
                else:
                    await stage.commit(claim, outcome)
                return
            except PartDown as error:
                if error.part is not Part.CATALOG or wait is None:
                    raise
                words.warning("commit_again", error=redact(str(error)), wait_s=wait)
            await asyncio.sleep(wait)
            if not await self._holds(claim):
                return

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
        if claim.starts > MOST_STARTS:
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
            # No breaker: whoever writes next finds out whether there is room again.
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
        if delivery.attempt < delivery.attempts:
            await stage.attempt_failed(claim, redact(str(error)), delivery)
            return
        await stage.commit(
            claim, Ask(Reason.ATTEMPTS_EXHAUSTED, f"{type(error).__name__}: {redact(str(error))}")
        )

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
