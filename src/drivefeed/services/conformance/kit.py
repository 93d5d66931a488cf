"""Runs all checks against one backend, some at a time, and says what came of each."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from drivefeed.services.conformance import (
    access_checks,
    cancel_checks,
    job_checks,
    key_checks,
    round_checks,
)
from drivefeed.services.conformance.finding import Check, Fault, NotTried, Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from drivefeed.services.conformance.bench import Bench

CHECKS: Final[tuple[Check, ...]] = (
    *access_checks.CHECKS,
    *key_checks.CHECKS,
    *job_checks.CHECKS,
    *cancel_checks.CHECKS,
    *round_checks.CHECKS,
)
"""All checks, in the order in which they are told."""

_GATE: Final = "health"
_NEEDS: Final = "it needs"
_AT_A_TIME: Final = 6


async def examine(
    bench: Bench,
    *,
    only: Sequence[str] = (),
    on_result: Callable[[Result], None] = lambda _: None,
) -> list[Result]:
    """Run the checks and clean up after them.

    Args:
        only: names of checks; all without any.
        on_result: told of each as it ends.

    Returns:
        The results in the order of :data:`CHECKS`.
    """
    chosen = [one for one in CHECKS if not only or one.name in only]
    gate = next(one for one in CHECKS if one.name == _GATE)
    first = await _tried(bench, gate)
    tasks: dict[str, asyncio.Task[Result]] = {}
    room = asyncio.Semaphore(_AT_A_TIME)

    async def one_of(check: Check) -> Result:
        if check.name == _GATE:
            found = first
        elif first.verdict is Verdict.FAILED:
            found = _not_tried(check, "the backend does not answer as one (health)")
        else:
            found = await in_order(check)
        on_result(found)
        return found

    async def in_order(check: Check) -> Result:
        before = tasks.get(check.after or "")
        if before is not None and _hinders(await before):
            return _not_tried(check, f"{_NEEDS} {check.after}")
        async with room:
            return await _tried(bench, check)

    async with asyncio.TaskGroup() as group:
        for check in chosen:
            tasks[check.name] = group.create_task(one_of(check), name=check.name)
    if first.verdict is not Verdict.FAILED:
        await bench.clear()
    return [tasks[one.name].result() for one in chosen]


async def _tried(bench: Bench, check: Check) -> Result:
    if check.signed and not bench.speaker.is_signed:
        return _not_tried(check, "requests are not signed")
    if check.fetched and bench.documents is None:
        return _not_tried(check, "the backend reads the store (--store-key)")
    started = time.monotonic()
    verdict, wrong, remedy = Verdict.PASSED, "", ""
    try:
        await check.run(bench)
    except NotTried as error:
        verdict, wrong = Verdict.NOT_TRIED, str(error)
    except Fault as error:
        verdict, wrong, remedy = Verdict.FAILED, error.wrong, error.remedy
    seconds = round(time.monotonic() - started, 3)
    return Result(check.name, check.what, verdict, wrong, remedy, seconds)


def _hinders(before: Result) -> bool:
    """Whether what comes after a check would only tell its fault again."""
    if before.verdict is Verdict.NOT_TRIED:
        return before.wrong.startswith(_NEEDS)
    return before.verdict is Verdict.FAILED


def _not_tried(check: Check, why: str) -> Result:
    return Result(check.name, check.what, Verdict.NOT_TRIED, why)
