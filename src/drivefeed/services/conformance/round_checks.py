"""What is shown: of two versions the higher, of two rounds the one that was not removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.services.conformance.finding import Check, Fault

if TYPE_CHECKING:
    from drivefeed.services.conformance.bench import Bench

_CONFLICT = 409


async def _lower(bench: Bench) -> None:
    high = bench.draft(seq=7)
    shown = await bench.done(high)
    low = bench.draft(seq=3, document_id=high.shape["document_id"])
    answer = await bench.speaker.ask("POST", "/v1/jobs", low.shape)
    if answer.status != _CONFLICT:
        await bench.ended(str((answer.body or {}).get("job_id")))
        if await bench.is_shown(str((answer.body or {}).get("job_id"))):
            raise Fault(
                "Of one document, seq 3 is shown although seq 7 was submitted before.",
                "When a job ends, show it only if no higher seq of its document was submitted; "
                "or answer 409 with the code 'lower_seq'.",
            )
    if not await bench.is_shown(shown):
        raise Fault(
            "A lower seq took a higher one out of search.",
            "Leave the higher seq as it is.",
        )


async def _shown(bench: Bench) -> None:
    first = bench.draft(seq=1)
    await bench.done(first)
    second = await bench.done(bench.draft(seq=2, document_id=first.shape["document_id"]))
    if not await bench.is_shown(second):
        raise Fault(
            "A job with the highest seq of its document is done and not shown.",
            "Show what ends, unless a higher seq was submitted.",
        )


async def _hide(bench: Bench) -> None:
    draft = bench.draft()
    job_id = await bench.done(draft)
    for live in (False, True):
        answer = await bench.speaker.ask("PUT", f"{draft.round_target}/live", {"live": live})
        if not answer.is_success or await bench.is_shown(job_id) is not live:
            raise Fault(
                f"PUT …/live with {str(live).lower()} was answered {answer.status}, and the job "
                f"says live = {str(not live).lower()}.",
                "Show and hide as told, and tell it with the job.",
            )


async def _place(bench: Bench) -> None:
    draft = bench.draft()
    await bench.done(draft)
    target = f"/v1/documents/{draft.shape['document_id']}/place"
    shape = {"name": "Ümbenannt 新.txt", "folders": ["a", "b"]}
    for address in (target, f"/v1/documents/{bench.new()}/place"):
        answer = await bench.speaker.ask("PUT", address, shape)
        if not answer.is_success:
            raise Fault(
                f"The place of a document was answered {answer}.",
                "Answer 204, also where there is no such document (any more).",
            )


async def _remove_unknown(bench: Bench) -> None:
    answer = await bench.speaker.ask("DELETE", bench.draft().round_target)
    if not answer.is_success:
        raise Fault(
            f"The removal of a round that never was here was answered {answer}.",
            "Answer 204: what is not there is removed.",
        )


async def _remove(bench: Bench) -> None:
    draft = bench.draft()
    job_id = await bench.done(draft)
    for time in ("first", "second"):
        answer = await bench.speaker.ask("DELETE", draft.round_target)
        if not answer.is_success:
            raise Fault(
                f"The {time} removal of a round was answered {answer}.",
                "Answer 204, however often it is asked.",
            )
        if await bench.is_shown(job_id):
            raise Fault(
                "A round that was removed is still shown.",
                "Take everything of the round out of search before 204 is answered.",
            )


async def _late_removal(bench: Bench) -> None:
    first = bench.draft()
    await bench.done(first)
    second = first.again(round=2, seq=2)
    job_id = await bench.done(second)
    await bench.speaker.ask("DELETE", first.round_target)
    if not await bench.is_shown(job_id):
        raise Fault(
            "The removal of round 1 of an import took round 2 with it.",
            "Keep what a round brings in under a name with the round, and remove by that.",
        )


CHECKS = (
    Check("newest-shown", "What ends is shown.", _shown),
    Check("lower-seq", "A lower seq is never shown over a higher.", _lower, after="newest-shown"),
    Check("hide-and-show", "It hides and shows as told.", _hide, after="newest-shown"),
    Check("place", "It takes another name and place.", _place),
    Check("remove-unknown", "What is not there can be removed.", _remove_unknown),
    Check("remove", "What is removed is gone, also twice.", _remove, after="newest-shown"),
    Check("late-removal", "Round 2 outlives a removal of 1.", _late_removal, after="newest-shown"),
)
"""In the order in which they are told."""
