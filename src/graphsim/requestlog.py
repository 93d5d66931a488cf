"""What was asked of graphsim: the outside view that tests check clients by."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator


class Entry(msgspec.Struct, kw_only=True):
    """One request. ``url`` is path and query as sent, with credentials blanked."""

    number: int
    time: float
    """Epoch seconds of graphsim's clock."""
    method: str
    host: str
    url: str
    op: str = ""
    drive: str | None = None
    item: str | None = None
    name: str | None = None
    flow: str | None = None
    """The grant of a request for a token."""
    user: str | None = None
    """The person it is about."""
    status: int = 0
    """0 while the answer has not begun, or when the connection was cut before it."""
    bytes: int = 0
    """Body bytes handed to the connection."""
    had_authorization: bool = False
    range: str | None = None
    request_id: str = ""
    in_flight: int = 0
    """Requests being answered when this one came, itself included."""
    fault: str | None = None
    app: str | None = None
    """The client id of the app whose token it carried."""
    tenant: str | None = None
    resource_units: int = 0
    """What it cost the app; a refused request costs as much."""
    penalty_age: float | None = None
    """Seconds since the app was asked to wait, where it had not waited long enough."""
    batch: int | None = None
    """The number of the ``$batch`` request that it was a part of."""
    complete: bool = False
    """The whole answer was handed over."""


class RequestLog:
    """The requests in order of arrival, with a few counts over them.

    Args:
        limit: How many of the latest requests are kept.
    """

    def __init__(self, limit: int = 200_000) -> None:
        self._limit = limit
        self._entries: list[Entry] = []
        self._count = 0
        self._open = 0
        self._open_by_op: Counter[str] = Counter()
        self.max_in_flight = 0
        self.max_in_flight_by_op: Counter[str] = Counter()

    @property
    def last(self) -> int:
        """The number of the latest request; use it as ``since`` later on."""
        return self._count

    def begin(self, entry: Entry) -> Entry:
        """Record a request as it arrives."""
        self._count += 1
        self._open += entry.batch is None
        entry.number, entry.in_flight = self._count, self._open
        self.max_in_flight = max(self.max_in_flight, self._open)
        self._entries.append(entry)
        if len(self._entries) > self._limit:
            del self._entries[: self._limit // 10]
        return entry

    def understood(self, entry: Entry) -> None:
        """Note that a request's ``op`` is now known."""
        self._open_by_op[entry.op] += 1
        now = self._open_by_op[entry.op]
        self.max_in_flight_by_op[entry.op] = max(self.max_in_flight_by_op[entry.op], now)

    def end(self, entry: Entry) -> None:
        """Note that a request is over."""
        self._open -= entry.batch is None
        if entry.op:
            self._open_by_op[entry.op] -= 1

    def entries(
        self, *, since: int = 0, op: str | None = None, item: str | None = None
    ) -> list[Entry]:
        """Return the requests after number ``since``, of one operation or item if given."""
        return [
            entry
            for entry in self._entries
            if entry.number > since and op in {None, entry.op} and item in {None, entry.item}
        ]

    def count(self, op: str | None = None, *, since: int = 0, item: str | None = None) -> int:
        """Return how many requests there were; see :meth:`entries`."""
        return len(self.entries(since=since, op=op, item=item))

    def leaked_authorization(self) -> list[Entry]:
        """Return the requests that took a token to the download host, where none belongs."""
        return [entry for entry in self._entries if entry.op == "download" and _leaks(entry)]

    def during_penalty(self, *, grace: float = 0.0, since: int = 0) -> list[Entry]:
        """Return the requests of apps that had been asked to wait, and had not.

        Args:
            grace: Seconds after the refusal in which requests that were on their way don't count.
            since: Only requests after this number.
        """
        return [
            entry
            for entry in self.entries(since=since)
            if entry.penalty_age is not None and entry.penalty_age >= grace
        ]

    def crowded(self, most: int, *, since: int = 0) -> list[Entry]:
        """Return the requests that came while more than ``most`` were being answered."""
        return [entry for entry in self.entries(since=since) if entry.in_flight > most]

    def units(self, *, since: int = 0, app: str | None = None, tenant: str | None = None) -> int:
        """Return the resource units used, by one app or in one tenant if given."""
        return sum(
            entry.resource_units
            for entry in self.entries(since=since)
            if app in {None, entry.app} and tenant in {None, entry.tenant}
        )

    def totals(self) -> dict[str, dict[str, int]]:
        """Return requests, bytes, resource units and the most in flight, by operation."""
        totals: dict[str, dict[str, int]] = {}
        for entry in self._entries:
            row = totals.setdefault(entry.op or "other", dict.fromkeys(_COLUMNS, 0))
            row["requests"] += 1
            row["bytes"] += entry.bytes
            row["resource_units"] += entry.resource_units
        for op, most in self.max_in_flight_by_op.items():
            if op in totals:
                totals[op]["max_in_flight"] = most
        return totals

    def clear(self) -> None:
        """Forget all requests; numbers go on."""
        self._entries.clear()
        self.max_in_flight = self._open
        self.max_in_flight_by_op = Counter(self._open_by_op)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)


_COLUMNS = ("requests", "bytes", "resource_units", "max_in_flight")


def _leaks(entry: Entry) -> bool:
    return entry.had_authorization
