"""Idempotency: one job for a key, whatever was lost on the way."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from drivefeed.services.conformance.finding import Check, Fault

if TYPE_CHECKING:
    from drivefeed.services.conformance.bench import Bench, Draft

_AT_ONCE: Final = 8
_ARRIVAL_SECONDS: Final = 2.5
_NOT_FOUND: Final = 404
_REMEDY = (
    "Keep the key in a unique column, insert the job under it, and answer with the job that is "
    "there: the same key is the same job, for ever."
)


async def _same_key(bench: Bench) -> None:
    with bench.held_shortly() as draft:
        first = await bench.submit(draft)
        _same(first, await bench.submit(draft), "submitted again after the reply was lost")


async def _cut(bench: Bench) -> None:
    with bench.held_shortly() as draft:
        await bench.speaker.ask_and_leave("POST", "/v1/jobs", draft.shape)
        found = await _arrived(bench, draft)
        first = await bench.submit(draft)
        if found.get("job_id"):
            _same(str(found["job_id"]), first, "submitted again after the connection was cut")
        _same(first, await bench.submit(draft), "submitted a third time")


async def _arrived(bench: Bench, draft: Draft) -> dict[str, Any]:
    """Return the job of a submission whose reply nobody read, once it is known."""
    until = time.monotonic() + _ARRIVAL_SECONDS
    while time.monotonic() < until:
        found = (await bench.find(draft.shape["key"])).body or {}
        if found.get("job_id"):
            return found
        await asyncio.sleep(0.1)
    return {}


async def _at_once(bench: Bench) -> None:
    with bench.held_shortly() as draft:
        found = await asyncio.gather(*(bench.submit(draft) for _ in range(_AT_ONCE)))
    if len(set(found)) > 1:
        raise Fault(
            f"One key submitted {_AT_ONCE} times at once became {len(set(found))} jobs.",
            "Let the database decide who is first (a unique column and INSERT … ON CONFLICT DO "
            "NOTHING); to look and then insert lets two through.",
        )


async def _finished_key(bench: Bench) -> None:
    draft = bench.draft()
    first = await bench.done(draft)
    _same(first, await bench.submit(draft), "submitted again after it was done")


def _same(first: str, second: str, how: str) -> None:
    if first != second:
        raise Fault(f"A key that was {how} became another job ({first}, {second}).", _REMEDY)


async def _find_before(bench: Bench) -> None:
    answer = await bench.find(f"{bench.new()}:1")
    if answer.status != _NOT_FOUND or answer.code != "unknown_key":
        raise Fault(
            f"A key that was never submitted was answered {answer}.",
            "Answer 404 with the code 'unknown_key'; drivefeed then submits.",
        )


async def _find_after(bench: Bench) -> None:
    draft = bench.draft()
    job_id = await bench.done(draft)
    answer = await bench.find(draft.shape["key"])
    if not answer.is_success or (answer.body or {}).get("job_id") != job_id:
        raise Fault(
            f"The key of job {job_id} was answered {answer}.",
            "Answer GET /v1/jobs?key=… with the job of the key, also after it ended.",
        )


async def _unknown_job(bench: Bench) -> None:
    for words, answer in (
        ("The status", await bench.told(bench.new())),
        ("The cancellation", await bench.cancel(bench.new())),
    ):
        if answer.status != _NOT_FOUND or answer.code != "unknown_job":
            raise Fault(
                f"{words} of a job that does not exist was answered {answer}.",
                "Answer 404 with the code 'unknown_job'; drivefeed then submits again.",
            )


async def _large_ids(bench: Bench) -> None:
    long = (bench.new() + bench.new()).replace("-", "")[:63]
    drafts: list[Draft] = [
        bench.draft(
            import_id=f"{long}{last}",
            document_id=f"{long}{last}",
            round=2**31 - 1,
            seq=2**53 - 1,
        )
        for last in "ab"
    ]
    first, second = [await bench.submit(one) for one in drafts]
    if first == second:
        raise Fault(
            "Two keys of 75 characters that differ in one became one job.",
            "Keep keys of up to 80 and ids of up to 64 characters whole.",
        )
    await bench.ended(first)


CHECKS = (
    Check("same-key", "A submission made again is the same job.", _same_key),
    Check("cut-reply", "So it is after the connection was cut.", _cut, after="same-key"),
    Check("at-once", "So it is when many come at once.", _at_once, after="same-key"),
    Check("finished-key", "So it is after the job ended.", _finished_key, after="same-key"),
    Check("find-before", "A key that was never seen is 404.", _find_before),
    Check("find-after", "A key that was seen finds its job.", _find_after),
    Check("unknown-job", "A job that does not exist is 404.", _unknown_job),
    Check("large-ids", "Ids are kept whole, numbers too.", _large_ids),
)
"""In the order in which they are told."""
