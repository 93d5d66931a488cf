"""Answers of a backend that are no success, translated: wait, retry, reject or hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from drivefeed.backends.contract import MOST_DETAIL, REFUSALS, Code, ProblemShape
from drivefeed.domain.errors import (
    DrivefeedError,
    NotFound,
    Permanent,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.backends.breaker import Breaker

_LONGEST_WAIT: Final = 3600.0
_DEFAULT_WAIT: Final = 30.0
_SHOWN: Final = 300
_SECRET_WRONG = frozenset({401, 403})
_NO_ADDRESS = frozenset({404, 405})
_DOWN = frozenset({502, 503, 504})
_REFUSED, _NOT_FOUND, _TOO_MANY, _FAILED = 400, 404, 429, 500
_UNKNOWN = frozenset({Code.UNKNOWN_JOB, Code.UNKNOWN_KEY})


class Answers:
    """Says what an answer that is no success means for the file and for the backend."""

    def __init__(self, where: str, breaker: Breaker) -> None:
        self._where = where
        self._breaker = breaker

    def error_of(self, status: int, headers: Mapping[str, str], body: bytes) -> DrivefeedError:
        """Return what to raise.

        Args:
            status: of HTTP, not one of success.
        """
        problem = _problem_of(body)
        said = _said(status, problem, body)
        code = problem.code if problem else ""
        if code in _UNKNOWN and status == _NOT_FOUND:
            return NotFound(f"{self._where} does not know it ({said}).")
        if status == _TOO_MANY:
            wait = _wait(headers) or _DEFAULT_WAIT
            return Throttled(f"{self._where} asked to wait: {said}", seconds=wait)
        if words := self._down(status, said):
            return self._breaker.down(words, least_ms=int((_wait(headers) or 0) * 1000))
        if status < _FAILED:
            words = f"{self._where} refused the file: {said}"
            return Permanent(words, reason=_reason(code, problem))
        if self._breaker.fault():
            return self._breaker.down(f"{self._where} fails again and again: {said}")
        return Transient(f"{self._where} failed: {said}")

    def _down(self, status: int, said: str) -> str:
        """Return what is wrong where it is no fault of the file, or nothing."""
        if status in _SECRET_WRONG:
            return (
                f"{self._where} refuses our secret ({said}). Compare the secret in its section of "
                "the settings with the backend's, and the clocks of both machines."
            )
        if status < _REFUSED or status in _NO_ADDRESS:
            return (
                f"{self._where} answered {said}, which is not the contract's. Look at the url in "
                "its section of the settings: redirects are not followed, because they would "
                "take the secret along."
            )
        return f"{self._where} is not available: {said}" if status in _DOWN else ""


def _reason(code: str, problem: ProblemShape | None) -> Reason:
    if code == Code.TOO_LARGE:
        return Reason.TOO_LARGE
    given = problem.reason if problem else None
    return next((one for one in REFUSALS if one == given), Reason.BACKEND_REFUSED)


def _problem_of(body: bytes) -> ProblemShape | None:
    try:
        return ProblemShape.model_validate_json(body)
    except ValidationError:
        return None


def _said(status: int, problem: ProblemShape | None, body: bytes) -> str:
    if problem is None:
        text = " ".join(body.decode("utf-8", "replace").split())[:_SHOWN]
    else:
        text = f"{problem.code}: {problem.detail or problem.title}"[:MOST_DETAIL]
    return redact(f"{status} {text}".strip())


def _wait(headers: Mapping[str, str]) -> float | None:
    written = headers.get("retry-after", "")
    return min(float(written), _LONGEST_WAIT) if written.isascii() and written.isdigit() else None
