"""How a job is told of: while it works, when it ends, and ever after."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from drivefeed.backends.contract import REFUSALS
from drivefeed.services.conformance.bench import FINAL
from drivefeed.services.conformance.finding import Check, Fault

if TYPE_CHECKING:
    from drivefeed.services.conformance.bench import Bench

_STATUS_SECONDS: Final = 5.0
_LOOKS: Final = 8
_NAME = "Übersicht 報告 עברית 🧪 'quoted' & \"more\" %2F.txt"
_BROKEN = b"%PDF-1.7\n\xff\xfe\x00\x9f" + bytes(range(256))


async def _usage(bench: Bench) -> None:
    found = await bench.job(await bench.done(bench.draft()))
    for name in ("pages", "chunks"):
        value = found.get(name)
        if type(value) is not int or value < 0:
            raise Fault(
                f"A job that is done says {name} = {value!r}.",
                f"Tell {name} as a whole number with every job that is done: it is charged by it.",
            )


async def _slow(bench: Bench) -> None:
    draft = bench.draft(held=True)
    job_id = await bench.working(draft)
    found = await bench.job(job_id, seconds=_STATUS_SECONDS)
    if found["state"] != "working":
        raise Fault(
            f"A job is {found['state']} before the backend could have read its document.",
            "Say 'working' until the document is searchable.",
        )
    draft.release()
    await bench.ended(job_id)


async def _progress(bench: Bench) -> None:
    draft = bench.draft(held=True)
    job_id = await bench.working(draft)
    seen: list[Any] = []
    for _ in range(4):
        seen.append((await bench.job(job_id, seconds=_STATUS_SECONDS)).get("progress", 0))
        await asyncio.sleep(0.02)
    draft.release()
    until = time.monotonic() + bench.deadline
    state = ""
    while state not in FINAL and time.monotonic() < until:
        found = await bench.job(job_id)
        state = found["state"]
        seen.append(found.get("progress", 0))
        await asyncio.sleep(0.02)
    if not all(type(one) is int and 0 <= one <= 100 for one in seen):  # noqa: PLR2004 - percent
        raise Fault(f"Progress was told as {seen}.", "Tell a whole number from 0 to 100.")
    if seen != sorted(seen):
        raise Fault(
            f"Progress fell: {seen}.",
            "Keep the highest that was told, also when the work begins again after a restart.",
        )


async def _final(bench: Bench) -> None:
    job_id = await bench.done(bench.draft())
    seen = [(await bench.job(job_id))["state"] for _ in range(_LOOKS)]
    if set(seen) != {"done"}:
        raise Fault(
            f"A job that was done was then told as {', '.join(dict.fromkeys(seen))}.",
            "Let nothing leave 'done', 'refused' and 'cancelled': drivefeed has charged by then.",
        )


async def _pages(bench: Bench) -> None:
    job_id = await bench.done(bench.draft())
    seen = [(await bench.job(job_id)).get("pages") for _ in range(3)]
    if len(set(seen)) > 1:
        raise Fault(
            f"The pages of a job that is done changed: {seen}.",
            "Count once, when the job ends, and keep the number.",
        )


async def _unicode(bench: Bench) -> None:
    job_id = await bench.submit(bench.draft(name=_NAME))
    found = await bench.ended(job_id)
    if found["state"] != "done":
        raise Fault(
            f"A text with the name {_NAME!r} ended as {found['state']}.",
            "Take names in any script; they are not paths, and say nothing of the content.",
        )


async def _reason(bench: Bench) -> None:
    draft = bench.draft(body=_BROKEN, name="broken.pdf", media_type="application/pdf")
    answer = await bench.speaker.ask("POST", "/v1/jobs", draft.shape)
    found = answer.body or {}
    if answer.is_success:
        found = await bench.ended(str(found.get("job_id")))
        if found["state"] != "refused":
            return  # it read something out of it
    if found.get("reason") not in set(REFUSALS):
        raise Fault(
            f"A damaged PDF was refused with the reason {found.get('reason')!r}.",
            f"Refuse with one of {', '.join(REFUSALS)}; detail has room for words.",
        )


CHECKS = (
    Check("usage", "A job that is done says its pages and chunks.", _usage),
    Check("slow", "It answers while it works, and ends in time.", _slow, fetched=True),
    Check("progress", "Progress never falls.", _progress, fetched=True, after="slow"),
    Check("final", "An end is final.", _final),
    Check("pages", "Pages are counted once.", _pages, after="usage"),
    Check("unicode", "Names may be in any script.", _unicode),
    Check("reason", "A refusal has a reason of the list.", _reason, fetched=True),
)
"""In the order in which they are told."""
