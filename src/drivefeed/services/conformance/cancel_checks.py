"""Cancelling: before, while and after, once and again, and at the same time as the end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from drivefeed.services.conformance.finding import Check, Fault, NotTried

if TYPE_CHECKING:
    from drivefeed.services.conformance.bench import Bench
    from drivefeed.services.conformance.speaker import Answer

_RACERS: Final = 5


async def _working(bench: Bench) -> None:
    draft = bench.draft(held=True)
    job_id = await bench.working(draft)
    cancelled = _said(await bench.cancel(job_id))
    draft.release()
    await _kept(bench, job_id, cancelled=cancelled)


async def _again(bench: Bench) -> None:
    draft = bench.draft(held=True)
    job_id = await bench.working(draft)
    first = _said(await bench.cancel(job_id))
    answer = await bench.cancel(job_id)
    draft.release()
    if not answer.is_success or (first and not _said(answer)):
        raise Fault(
            f"A second cancellation was answered {answer}, after the first said {first}.",
            "Answer 200 and the same as before: a reply may have been lost.",
        )


async def _done(bench: Bench) -> None:
    job_id = await bench.done(bench.draft())
    if _said(await bench.cancel(job_id)):
        raise Fault(
            "A job that is done was told to be cancelled.",
            "Answer cancelled = false once a job is done; drivefeed removes its round then.",
        )
    if (await bench.job(job_id))["state"] != "done":
        raise Fault(
            "A cancellation changed a job that was done.",
            "Leave a job that ended as it is.",
        )


async def _race(bench: Bench) -> None:
    draft = bench.draft()
    job_id = await bench.submit(draft)
    answers = await asyncio.gather(*(bench.cancel(job_id) for _ in range(_RACERS)))
    said = {_said(one) for one in answers}
    if len(said) > 1:
        raise Fault(
            f"Of {_RACERS} cancellations at once, some said true and some false.",
            "Decide in one statement whether the job still works, and answer all alike.",
        )
    await _kept(bench, job_id, cancelled=said.pop())


async def _kept(bench: Bench, job_id: str, *, cancelled: bool) -> None:
    """See that what was said of a cancellation is what happens."""
    found = await bench.ended(job_id)
    if cancelled and (found["state"] == "done" or await bench.is_shown(job_id)):
        raise Fault(
            f"A job that was told to be cancelled is {found['state']} now.",
            "Look whether the job was cancelled in the statement that ends it, and drop its "
            "result then.",
        )
    if not cancelled and found["state"] == "cancelled":
        raise Fault(
            "A job whose cancellation was refused is cancelled now.",
            "Answer cancelled = true where the job will not finish.",
        )


def _said(answer: Answer) -> bool:
    value = (answer.body or {}).get("cancelled")
    if not answer.is_success or not isinstance(value, bool):
        raise Fault(
            f"A cancellation was answered {answer}.",
            "Answer 200 with cancelled = true or false, whatever state the job is in.",
        )
    return value


async def _before(bench: Bench) -> None:
    draft = bench.draft(held=True)
    await bench.speaker.ask("POST", f"/v1/jobs/{bench.new()}/cancel")
    try:
        job_id = await bench.working(draft)
    except NotTried:
        return
    if (await bench.job(job_id))["state"] == "cancelled":
        raise Fault(
            "A job was born cancelled.",
            "A cancellation of an unknown job is 404 and leaves nothing behind.",
        )
    draft.release()


CHECKS = (
    Check("cancel-before", "What is unknown cannot be cancelled.", _before, fetched=True),
    Check("cancel-working", "A cancelled job is not shown.", _working, fetched=True),
    Check("cancel-again", "It may be asked again.", _again, fetched=True, after="cancel-working"),
    Check("cancel-done", "What is done stays done.", _done, after="cancel-again"),
    Check("cancel-race", "Many at once get one answer.", _race, after="cancel-done"),
)
"""In the order in which they are told."""
