"""What goes wrong in a request, as a person reads it: RFC 9457 with a reason and a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import (
    DrivefeedError,
    NeedsAttention,
    NotFound,
    PartDown,
)
from drivefeed.domain.words import meaning_of, remedy_of
from drivefeed.stages.breaker import HOLDS

if TYPE_CHECKING:
    from collections.abc import Mapping

PROBLEM_TYPE = "application/problem+json"


class Problem(Exception):
    """A request that is answered with a status of 400 and more.

    Args:
        status: of HTTP.
        code: a short name that stays the same, for programs.
        title: what is so, whatever the request was.
        detail: what is so with this request.
        remedy: what to do about it.
        headers: to send along.
        errors: what is wrong with each parameter, where it is about parameters.
    """

    def __init__(
        self,
        status: int,
        code: str,
        title: str,
        *,
        detail: str = "",
        remedy: str = "",
        headers: Mapping[str, str] | None = None,
        errors: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(detail or title)
        self.status = status
        self.code = code
        self.title = title
        self.detail = detail
        self.remedy = remedy
        self.headers = dict(headers or {})
        self.errors = errors or []

    def as_dict(self) -> dict[str, Any]:
        """Return it as the members of a problem document."""
        members: dict[str, Any] = {
            "type": f"urn:drivefeed:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail or self.title,
            "reason": self.code,
            "remedy": self.remedy,
        }
        if self.errors:
            members["errors"] = self.errors
        return members


def not_found(detail: str = "") -> Problem:
    """Return the answer for what is not there, or belongs to somebody else."""
    return Problem(
        404,
        "not_found",
        "There is nothing at this address.",
        detail=detail,
        remedy="Begin at the overview; what was disconnected or renamed has another address.",
    )


def sign_in_needed(detail: str = "") -> Problem:
    """Return the answer for a request without a valid key or session."""
    return Problem(
        401,
        "sign_in_needed",
        "Please sign in.",
        detail=detail,
        remedy="Send an API key as 'Authorization: Bearer df_…', or open a link that "
        "'drivefeed key link' prints.",
        headers={"WWW-Authenticate": 'Bearer realm="drivefeed"'},
    )


def too_many_wrong_keys(seconds: int) -> Problem:
    """Return the answer for an address that tried too many wrong keys."""
    return Problem(
        429,
        "too_many_wrong_keys",
        "Too many wrong keys came from your address.",
        remedy=f"Wait {seconds} s, then try again with a valid key.",
        headers={"Retry-After": str(seconds)},
    )


def bad_request(detail: str, errors: list[dict[str, str]] | None = None) -> Problem:
    """Return the answer for parameters that say nothing."""
    return Problem(
        400,
        "bad_request",
        "The request was not understood.",
        detail=detail,
        remedy="Repair the parameter; /v1/openapi.json describes all of them.",
        errors=errors,
    )


def problem_of(error: DrivefeedError) -> Problem:
    """Return the answer for an error that drivefeed raised on purpose."""
    if isinstance(error, NotFound):
        return not_found(str(error))
    if isinstance(error, PartDown):
        code = HOLDS[error.part]
        return Problem(
            503,
            code.value,
            meaning_of(code),
            detail=str(error),
            remedy=remedy_of(code),
            headers={"Retry-After": "5"},
        )
    if isinstance(error, NeedsAttention):
        code = error.reason
        return Problem(503, code.value, meaning_of(code), detail=str(error), remedy=remedy_of(code))
    return Problem(500, "failed", "The request failed.", detail=str(error), remedy="Try it again.")
