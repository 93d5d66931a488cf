"""Backends with one fault each: small variations of the sample backend, which has none.

Each names the check of the conformance kit that has to catch it, and no other may.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from typing import Any, ClassVar

from support.sample_backend import SECRET, sample

Right: Any = sample.Backend
Problem: Any = sample.Problem


class Wrong(Right):
    """A backend with a fault; ``caught_by`` is the check that must tell of it."""

    caught_by: ClassVar[str]
    is_like_others: ClassVar[bool] = False
    """Whether there is one much like it, so that only the long run of tests takes it too."""

    def __init__(self, **more: Any) -> None:
        self.counts: Counter[str] = Counter()
        super().__init__(secret=SECRET, **more)


class AnotherVersion(Wrong):
    caught_by = "health"
    is_like_others = True

    def answer(self, method: str, target: str, body: bytes) -> Any:
        if target == "/v1/health":
            return 200, {"version": "v2"}
        return super().answer(method, target, body)


class LetsStrangersIn(Wrong):
    caught_by = "wrong-secret"
    is_like_others = True

    def refusal(self, headers: Any, method: str, target: str, body: bytes) -> str:
        if "Drivefeed-Signature" not in headers:
            return ""
        return super().refusal(headers, method, target, body)


class HasNoClock(Wrong):
    caught_by = "old-signature"

    def refusal(self, headers: Any, method: str, target: str, body: bytes) -> str:
        said = super().refusal(headers, method, target, body)
        return "" if "too old" in said else said


class SignsNoBodies(Wrong):
    caught_by = "other-body"

    def refusal(self, headers: Any, method: str, target: str, body: bytes) -> str:
        said = super().refusal(headers, method, target, body)
        return "" if body and "does not fit" in said else said


class SignsNoQueries(Wrong):
    caught_by = "other-address"
    is_like_others = True

    def refusal(self, headers: Any, method: str, target: str, body: bytes) -> str:
        said = super().refusal(headers, method, target, body)
        return "" if "?key=" in target and "does not fit" in said else said


class ForgetsNonces(Wrong):
    caught_by = "replay"

    def is_new(self, nonce: str) -> bool:
        return True


class FailsOnWrongInput(Wrong):
    caught_by = "malformed"

    def submit(self, sent: dict[str, Any]) -> Any:
        if not isinstance(sent.get("seq", 0), int):
            raise TypeError("seq")
        return super().submit(sent)


class NewJobForEachReply(Wrong):
    caught_by = "same-key"

    def submit(self, sent: dict[str, Any]) -> Any:
        found = super().submit(sent)
        if found["state"] != "working":
            return found
        self.counts[sent["key"]] += 1
        if self.counts[sent["key"]] == 1:
            return found
        return {**found, "job_id": f"{found['job_id']}-{self.counts[sent['key']]}"}


class LooksThenInserts(Wrong):
    """Two that come at once both see that there is no job."""

    caught_by = "at-once"

    def __init__(self, **more: Any) -> None:
        self.looked: Counter[str] = Counter()
        super().__init__(**more)

    def submit(self, sent: dict[str, Any]) -> Any:
        key = str(sent.get("key"))
        known = self.rows("SELECT job_id FROM jobs WHERE key = ?", key)
        if not known:
            self.wait_for_another(key)
        found = super().submit(sent)
        if not known:
            with self.lock:
                self.counts[key] += 1
                if self.counts[key] > 1:
                    return {**found, "job_id": f"{found['job_id']}-{self.counts[key]}"}
        return found

    def wait_for_another(self, key: str) -> None:
        """Hold who saw no job until somebody else saw none, so that a busy machine parts no two."""
        with self.lock:
            self.looked[key] += 1
        until = time.monotonic() + 0.5
        while self.looked[key] < 2 and time.monotonic() < until:
            time.sleep(0.01)


class ForgetsEndedKeys(Wrong):
    caught_by = "finished-key"
    is_like_others = True

    def submit(self, sent: dict[str, Any]) -> Any:
        known = self.rows("SELECT state FROM jobs WHERE key = ?", sent.get("key"))
        found = super().submit(sent)
        if known and known[0]["state"] == "done":
            return {**found, "job_id": f"{found['job_id']}-again"}
        return found


class KnowsEveryKey(Wrong):
    caught_by = "find-before"

    def find(self, key: str) -> Any:
        try:
            return super().find(key)
        except Problem:
            return {}


class FindsNothing(Wrong):
    caught_by = "find-after"

    def answer(self, method: str, target: str, body: bytes) -> Any:
        if method == "GET" and target.startswith("/v1/jobs?"):
            raise Problem(404, "unknown_key", "No.")
        return super().answer(method, target, body)


class KnowsEveryJob(Wrong):
    caught_by = "unknown-job"
    is_like_others = True

    def status(self, job_id: str) -> Any:
        try:
            return super().status(job_id)
        except Problem:
            return {"job_id": job_id, "state": "working", "progress": 0}


class CutsKeys(Wrong):
    caught_by = "large-ids"

    def submit(self, sent: dict[str, Any]) -> Any:
        if isinstance(sent.get("key"), str) and len(sent["key"]) > 60:
            sent = {**sent, "key": sent["key"][:40], "document_id": "cut"}
        return super().submit(sent)


class CountsNoPages(Wrong):
    caught_by = "usage"
    is_like_others = True

    def told(self, row: Any) -> Any:
        found = super().told(row)
        found.pop("pages")
        return found


class KeepsTheCallerWaiting(Wrong):
    """The status of a job is answered when the job has ended."""

    caught_by = "slow"
    is_like_others = True

    def status(self, job_id: str) -> Any:
        found = super().status(job_id)
        until = time.monotonic() + 6
        while found["state"] == "working" and time.monotonic() < until:
            time.sleep(0.05)
            found = super().status(job_id)
        return found


class DoneBeforeItBegan(Wrong):
    is_like_others = True  # its race with a cancellation needs a machine that is not busy
    caught_by = "slow"

    def told(self, row: Any) -> Any:
        found = super().told(row)
        if found["state"] == "working" and self.counts[found["job_id"]] == 0:
            found |= {"state": "done", "progress": 100, "pages": 1, "chunks": 1, "live": True}
        return found


class FallsBack(Wrong):
    caught_by = "progress"

    def told(self, row: Any) -> Any:
        found = super().told(row)
        if found["state"] == "working":
            with self.lock:
                self.counts[found["job_id"]] += 1
                found["progress"] = 40 - self.counts[found["job_id"]]
        return found


class WorksAgain(Wrong):
    """A job that was done is told as working after a while."""

    caught_by = "final"

    def status(self, job_id: str) -> Any:
        found = super().status(job_id)
        if found["state"] == "done":
            self.counts[job_id] += 1
            if self.counts[job_id] > 7:
                return {**found, "state": "working"}
        return found


class CountsOn(Wrong):
    caught_by = "pages"
    is_like_others = True
    _count = itertools.count(1)

    def told(self, row: Any) -> Any:
        found = super().told(row)
        return {**found, "pages": next(self._count)} if found["state"] == "done" else found


class ReadsAscii(Wrong):
    caught_by = "unicode"

    def submit(self, sent: dict[str, Any]) -> Any:
        if not str(sent.get("name", "")).isascii():
            raise Problem(400, "malformed", "name")
        return super().submit(sent)


class HasReasonsOfItsOwn(Wrong):
    caught_by = "reason"
    is_like_others = True

    def refuse(self, job_id: str, reason: str, detail: str) -> None:
        super().refuse(job_id, "did not like it", detail)


class SaysItCancelled(Wrong):
    """It answers that the job is cancelled, and lets it go on."""

    caught_by = "cancel-working"

    def cancel(self, job_id: str) -> Any:
        job = self.status(job_id)
        return {"cancelled": job["state"] != "done", "job": job}


class CancelsOnce(Wrong):
    caught_by = "cancel-again"
    is_like_others = True

    def cancel(self, job_id: str) -> Any:
        if self.status(job_id)["state"] == "cancelled":
            raise Problem(409, "conflict", "It is cancelled already.")
        return super().cancel(job_id)


class CancelsWhatIsDone(Wrong):
    caught_by = "cancel-done"
    is_like_others = True

    def cancel(self, job_id: str) -> Any:
        found = super().cancel(job_id)
        (row,) = self.rows("SELECT progress FROM jobs WHERE job_id = ?", job_id)
        return {**found, "cancelled": True} if row["progress"] == 100 else found


class AnswersRacersDifferently(Wrong):
    caught_by = "cancel-race"

    def cancel(self, job_id: str) -> Any:
        found = super().cancel(job_id)
        with self.lock:
            self.counts[job_id] += 1
            if self.counts[job_id] == 4:
                found = {**found, "cancelled": not found["cancelled"]}
        return found


class ShowsTheLower(Wrong):
    caught_by = "lower-seq"

    def done(self, row: Any, chunks: Any, *, pages: int) -> None:
        super().done({**dict(row), "seq": 2**60}, chunks, pages=pages)


class ShowsNothing(Wrong):
    """What ends stays hidden until it is told otherwise."""

    caught_by = "newest-shown"
    is_like_others = True

    def done(self, row: Any, chunks: Any, *, pages: int) -> None:
        super().done({**dict(row), "seq": -1}, chunks, pages=pages)


class HidesNothing(Wrong):
    caught_by = "hide-and-show"

    def set_live(self, document_id: str, import_id: str, round_: int, live: bool) -> None:
        """Do nothing."""


class KnowsPlacesOfItsOwn(Wrong):
    caught_by = "place"
    is_like_others = True

    def set_place(self, document_id: str, name: str, folders: list[str]) -> None:
        if not self.rows("SELECT 1 FROM jobs WHERE document_id = ?", document_id):
            raise Problem(404, "unknown_document", "There is no such document.")


class RemovesOnlyWhatIsThere(Wrong):
    caught_by = "remove-unknown"
    is_like_others = True

    def remove(self, document_id: str, import_id: str, round_: int) -> None:
        if not self.rows("SELECT 1 FROM jobs WHERE import_id = ?", import_id):
            raise Problem(404, "unknown_round", "There is no such round.")
        super().remove(document_id, import_id, round_)


class RemovesLater(Wrong):
    caught_by = "remove"

    def remove(self, document_id: str, import_id: str, round_: int) -> None:
        """Put it on a list that nobody reads."""


class RemovesAllRounds(Wrong):
    caught_by = "late-removal"

    def remove(self, document_id: str, import_id: str, round_: int) -> None:
        self.rows("UPDATE jobs SET live = 0 WHERE import_id = ?", import_id)


WRONG: tuple[type[Wrong], ...] = tuple(Wrong.__subclasses__())
"""All of them."""
