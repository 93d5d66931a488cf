"""What a check is, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from drivefeed.services.conformance.bench import Bench


class Fault(Exception):
    """The backend does not keep the contract.

    Args:
        wrong: one sentence of what is wrong.
        remedy: one sentence of what to do.
    """

    def __init__(self, wrong: str, remedy: str) -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.remedy = remedy


class NotTried(Exception):
    """The check has nothing to go by with this backend; the sentence says why."""


@dataclass(frozen=True, slots=True)
class Check:
    """A named question to a backend.

    Attributes:
        what: what must be so.
        after: another check, without which this one would tell the same fault again.
        signed: only for backends that are spoken to with signatures.
        fetched: only for backends that fetch the documents of the kit.
    """

    name: str
    what: str
    run: Callable[[Bench], Awaitable[None]]
    after: str | None = None
    signed: bool = False
    fetched: bool = False


class Verdict(StrEnum):
    """What came of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True)
class Result:
    """What a check found; ``wrong`` also says why it was not tried."""

    name: str
    what: str
    verdict: Verdict
    wrong: str = ""
    remedy: str = ""
    seconds: float = 0.0
