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
_REASONS = {
    Code.TOO_LARGE: Reason.TOO_LARGE,
    Code.LOWER_SEQ: Reason.SUPERSEDED,
}
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
        if status in _SECRET_WRONG:
            return self._breaker.down(
                f"{self._where} refuses our secret ({said}). Compare the secret in its section of "
                "the settings with the backend's, and the clocks of both machines."
            )
        if code in _UNKNOWN and status == 404:  # noqa: PLR2004 - the number is its own name
            return NotFound(f"{self._where} does not know it ({said}).")
        if 300 <= status < 400 or status in _NO_ADDRESS:  # noqa: PLR2004 - the class of redirects
            return self._breaker.down(
                f"{self._where} answered {said}, which is not the contract's. Look at the url in "
                "its section of the settings: redirects are not followed, because they would "
                "take the secret along."
            )
        if status == 429:  # noqa: PLR2004 - the number is its own name
            wait = _wait(headers) or _DEFAULT_WAIT
            return Throttled(f"{self._where} asked to wait: {said}", seconds=wait)
        if status in _DOWN:
            least = int((_wait(headers) or 0) * 1000)
            return self._breaker.down(f"{self._where} is not available: {said}", least_ms=least)
        if 400 <= status < 500:  # noqa: PLR2004 - the class of refusals
            reason = _REASONS.get(Code(code)) if code in set(Code) else None
            return Permanent(
                f"{self._where} refused the file: {said}", reason=reason or _reason(problem)
            )
        if self._breaker.fault():
            return self._breaker.down(f"{self._where} fails again and again: {said}")
        return Transient(f"{self._where} failed: {said}")


def _reason(problem: ProblemShape | None) -> Reason:
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
