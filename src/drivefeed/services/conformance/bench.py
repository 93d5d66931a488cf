"""What checks work with: submissions under fresh ids, and jobs brought to their end."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from drivefeed.services.conformance.finding import Fault, NotTried

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drivefeed.services.conformance.documents import Documents, Served
    from drivefeed.services.conformance.speaker import Answer, Speaker

FINAL: Final = frozenset({"done", "refused", "cancelled"})
STATES: Final = FINAL | {"working"}
_HELD_SECONDS: Final = 1.0
_PATIENCE: Final = 3.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_TEXT = "A sentence of the conformance kit about calibration, number {}.\n" * 3


@dataclass
class Draft:
    """A submission to make; ``served`` is there where the backend fetches it."""

    shape: dict[str, Any]
    served: Served | None = None

    def again(self, **changes: Any) -> Draft:
        """Return another submission of the same bytes with other members."""
        shape = {**self.shape, **changes}
        if "key" not in changes:
            shape["key"] = f"{shape['import_id']}:{shape['round']}"
        return Draft(shape, self.served)

    @property
    def round_target(self) -> str:
        """The address of its round."""
        one = self.shape
        return (
            f"/v1/documents/{_part(one['document_id'])}/imports/{_part(one['import_id'])}"
            f"/rounds/{one['round']}"
        )

    @property
    def waits_at(self) -> str | None:
        """The address at which nobody asked for its bytes; None where somebody did."""
        served = self.served
        return served.url if served is not None and not served.asked.is_set() else None

    def release(self) -> None:
        """Let the backend have the bytes."""
        if self.served is not None:
            self.served.release()


@dataclass
class Bench:
    """A backend under examination.

    Attributes:
        store_keys: keys of objects for backends that read the store; else the kit serves.
        deadline: seconds that a tiny document may take.
        made: submissions whose rounds are removed at the end.
    """

    speaker: Speaker
    documents: Documents | None
    store_keys: tuple[str, ...] = ()
    deadline: float = 60.0
    made: list[Draft] = field(default_factory=list)
    _of_jobs: dict[str, Draft] = field(default_factory=dict)
    _count: int = 0

    def draft(self, *, body: bytes | None = None, held: bool = False, **changes: Any) -> Draft:
        """Make a submission of a document that the backend never saw."""
        self._count += 1
        import_id = changes.get("import_id") or self.new()
        round_ = changes.get("round", 1)
        content = _TEXT.format(*[self._count] * 3).encode() if body is None else body
        served = None
        if self.documents is not None:
            served = self.documents.put(f"{self._count}-{self.new()}", content, held=held)
            where = {"url": served.url}
        else:
            where = {"store_key": self.store_keys[self._count % len(self.store_keys)]}
        shape = {
            "key": f"{import_id}:{round_}",
            "org_id": "drivefeed-check",
            "document_id": self.new(),
            "import_id": import_id,
            "round": round_,
            "seq": 1,
            "name": f"check-{self._count}.txt",
            "size": len(content),
            "media_type": "text/plain",
            "source": "drive",
            "folders": ["check"],
            "content": where,
            **changes,
        }
        one = Draft(shape, served)
        self.made.append(one)
        return one

    @contextmanager
    def held_shortly(self) -> Iterator[Draft]:
        """Make a submission whose bytes come when the block ends.

        A backend that fetches before it answers gets them after a second.
        """
        draft = self.draft(held=True)
        timer = asyncio.get_running_loop().call_later(_HELD_SECONDS, draft.release)
        try:
            yield draft
        finally:
            timer.cancel()
            draft.release()

    def new(self) -> str:
        """Return a fresh id."""
        return self.speaker.ids.new()

    async def submit(self, draft: Draft) -> str:
        """Submit and return the job's id.

        Raises:
            Fault: it was not accepted.
        """
        if draft not in self.made:
            self.made.append(draft)
        answer = await self.speaker.ask("POST", "/v1/jobs", draft.shape)
        job_id = (answer.body or {}).get("job_id")
        if not answer.is_success or not isinstance(job_id, str) or not job_id:
            raise Fault(
                f"A right submission was answered {answer}.",
                "Answer 200 with the job, its job_id among it.",
            )
        self._of_jobs[job_id] = draft
        return job_id

    async def told(self, job_id: str, *, seconds: float = 30.0) -> Answer:
        """Ask how a job stands, whatever the answer is."""
        return await self.speaker.ask("GET", f"/v1/jobs/{_part(job_id)}", seconds=seconds)

    async def job(self, job_id: str, *, seconds: float = 30.0) -> dict[str, Any]:
        """Ask how a known job stands.

        Raises:
            Fault: the answer is no job.
        """
        answer = await self.told(job_id, seconds=seconds)
        found = answer.body or {}
        if not answer.is_success or found.get("state") not in STATES:
            self._require_fetched(job_id, f"was answered {answer.status}")
            raise Fault(
                f"The status of a known job was answered {answer}.",
                f"Answer 200 with a state of {', '.join(sorted(STATES))}.",
            )
        return found

    async def ended(self, job_id: str) -> dict[str, Any]:
        """Wait for the end of a job.

        Raises:
            Fault: it did not end before the deadline.
        """
        until = time.monotonic() + self.deadline
        pause = _FIRST_PAUSE
        while True:
            found = await self.job(job_id)
            if found["state"] in FINAL:
                return found
            if time.monotonic() > until:
                self._require_fetched(job_id, f"is {found['state']}")
                raise Fault(
                    f"A tiny text was not done after {self.deadline:g} seconds; it is "
                    f"{found['state']} at {found.get('progress')} percent.",
                    "End every job: what fails is refused with a reason. --deadline gives it "
                    "more time.",
                )
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    def _require_fetched(self, job_id: str, stands: str) -> None:
        """Tell a document that was never asked for by that, and not by what came of its job.

        Raises:
            Fault: the bytes of the job's submission were never asked for.
        """
        draft = self._of_jobs.get(job_id)
        address = draft.waits_at if draft else None
        if address is not None:
            raise Fault(
                f"The document at {address} was never asked for; its job {stands}.",
                "Fetch content.url. Where the backend cannot reach that address, name one that it "
                "reaches with --documents, or give keys of its store with --store-key.",
            )

    async def done(self, draft: Draft) -> str:
        """Submit, wait until it is done, and return the job's id.

        Raises:
            Fault: it came to another end.
        """
        job_id = await self.submit(draft)
        found = await self.ended(job_id)
        if found["state"] != "done":
            self._require_fetched(job_id, f"is {found['state']}")
            raise Fault(
                f"A plain text of {draft.shape['size']} bytes ended as {found['state']} "
                f"({found.get('reason')}: {found.get('detail')}).",
                "Text in UTF-8 has to be readable; where the kit's documents cannot be fetched, "
                "name their address with --documents or give keys with --store-key.",
            )
        return job_id

    async def working(self, draft: Draft) -> str:
        """Submit a document that is held back; return once the job is known to work on it.

        Raises:
            NotTried: the backend answers only after it has the bytes.
        """
        submitting = asyncio.ensure_future(self.submit(draft))
        done, _ = await asyncio.wait({submitting}, timeout=_PATIENCE)
        if not done:
            draft.release()
            await submitting
            raise NotTried("The backend fetches a document before it answers the submission.")
        return submitting.result()

    async def cancel(self, job_id: str) -> Answer:
        """Ask for a cancellation."""
        return await self.speaker.ask("POST", f"/v1/jobs/{_part(job_id)}/cancel")

    async def find(self, key: str) -> Answer:
        """Ask for the job of a key."""
        return await self.speaker.ask("GET", f"/v1/jobs?key={_part(key)}")

    async def is_shown(self, job_id: str) -> bool:
        """Whether what a job brought in is shown; not where the backend forgot the job."""
        answer = await self.told(job_id)
        return answer.is_success and (answer.body or {}).get("live", True) is not False

    async def clear(self) -> None:
        """Remove what was submitted."""
        for draft in self.made:
            draft.release()
            try:
                await self.speaker.ask("DELETE", draft.round_target)
            except Fault:
                return


def _part(text: str) -> str:
    return quote(str(text), safe="")
