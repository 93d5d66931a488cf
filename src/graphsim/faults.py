"""Faults: scripted misbehaviour, matched to requests, counted, and the same in every run."""

from __future__ import annotations

from typing import Any

import msgspec


class Match(msgspec.Struct, kw_only=True):
    """Which requests a fault applies to; every given field must agree."""

    op: str | None = None
    """``drive``, ``item``, ``children``, ``delta``, ``content``, ``download``, ``token`` …"""
    item: str | None = None
    """An item id."""
    name: str | None = None
    """An item's name, for ``item``, ``content`` and ``download``."""
    url: str | None = None
    """A part of the URL as it was sent."""
    drive: str | None = None
    method: str | None = None
    flow: str | None = None
    """For ``token``: ``client_credentials``, ``refresh_token``, ``authorization_code`` or
    ``device_code``."""
    user: str | None = None
    """For ``token``: the user principal name of the person whose token it is about."""
    client: str | None = None
    """For ``token``: the client id."""


class Fault(msgspec.Struct, kw_only=True):
    """One scripted misbehaviour.

    ``kind`` is one of:

    - ``status``: answer ``status`` with Graph's error body (``code``, ``inner``), ``retry_after``
      as a header if given (any text), ``headers``; on ``token`` with ``aadsts`` as Entra does.
    - ``throttle``: ``status`` 429 with ``retry_after``.
    - ``gone``: 410 on delta, with ``Location`` unless ``location`` is false; ``inner`` code.
    - ``truncate``: close the connection after ``after`` bytes of the body, in order.
    - ``reset``: reset the connection (TCP RST) after ``after`` bytes of the body.
    - ``stall``: go silent for ``seconds`` after ``after`` bytes of the body, then go on.
    - ``empty_page``: an empty delta page whose nextLink leads to the page asked for.
    - ``loop``: a delta page whose nextLink is its own; with ``fresh``, spelled differently.
    - ``duplicate``: each item of the page twice; ``shuffle``: the page in reverse order.
    - ``drop_fields``: leave the properties ``fields`` out of every item of the answer.
    - ``expired_url``: the download host answers 401 as for an expired URL.
    - ``inline``: /content answers 200 with the body, without a redirect.
    - ``ignore_range``: the download host answers 200 with everything to a range.
    - ``no_length``: the body comes chunked, without Content-Length.
    - ``alter``: the delivered bytes have ``extra`` appended, unlike listed size and hash.
    """

    kind: str
    match: Match = msgspec.field(default_factory=Match)
    skip: int = 0
    """Let so many matching requests pass first."""
    count: int = 1
    """Apply to so many requests; -1 for every one until removed."""
    status: int = 503
    code: str | None = None
    inner: str | None = None
    message: str = "graphsim was told to refuse this request."
    retry_after: str | None = None
    headers: dict[str, str] = {}
    aadsts: int | None = None
    after: int = 0
    seconds: float = 0.0
    location: bool = True
    fresh: bool = False
    fields: list[str] = []
    extra: str = ""
    id: int = 0
    """Set when the fault is added."""
    hits: int = 0
    """How often it was applied."""


class Asked(msgspec.Struct):
    """A request as faults see it; filled in while it is understood."""

    method: str
    url: str
    op: str = ""
    item: str | None = None
    name: str | None = None
    drive: str | None = None
    flow: str | None = None
    user: str | None = None
    client: str | None = None


KINDS = frozenset(
    [
        "status",
        "throttle",
        "gone",
        "truncate",
        "reset",
        "stall",
        "empty_page",
        "loop",
        "duplicate",
        "shuffle",
        "drop_fields",
        "expired_url",
        "inline",
        "ignore_range",
        "no_length",
        "alter",
    ]
)


class Faults:
    """The faults that are waiting, in the order they were added."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._added = 0

    def add(self, kind: str, *, match: Match | None = None, **options: Any) -> Fault:
        """Add a fault; match fields may be given as ``op=``, ``item=``, ``url=`` … directly.

        Raises:
            ValueError: There is no such kind of fault.
        """
        if kind not in KINDS:
            raise ValueError(f"There is no fault called {kind}; choose from {sorted(KINDS)}.")
        own = {name: options.pop(name) for name in Match.__struct_fields__ if name in options}
        fault = Fault(kind=kind, match=match or Match(**own), **options)
        return self.insert(fault)

    def insert(self, fault: Fault) -> Fault:
        """Add a complete fault and give it its number."""
        self._added += 1
        fault.id = self._added
        if fault.kind == "throttle":
            fault.kind, fault.status = "status", 429
            fault.code = fault.code or "activityLimitReached"
        self._faults.append(fault)
        return fault

    def clear(self, identifier: int | None = None) -> None:
        """Remove one fault, or all of them."""
        self._faults = [one for one in self._faults if identifier and one.id != identifier]

    def waiting(self) -> list[Fault]:
        """Return the faults that can still strike."""
        return [fault for fault in self._faults if fault.count]

    def take(self, asked: Asked, *kinds: str) -> Fault | None:
        """Return the first waiting fault of these kinds that matches, and count it as used."""
        for fault in self._faults:
            if fault.kind not in kinds or not fault.count or not _matches(fault.match, asked):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            fault.count -= 1 if fault.count > 0 else 0
            fault.hits += 1
            return fault
        return None


def _matches(match: Match, asked: Asked) -> bool:
    return (
        match.op in {None, asked.op}
        and match.item in {None, asked.item}
        and match.name in {None, asked.name}
        and match.drive in {None, asked.drive}
        and match.flow in {None, asked.flow}
        and match.user in {None, asked.user}
        and match.client in {None, asked.client}
        and (match.method is None or match.method.upper() == asked.method)
        and (match.url is None or match.url in asked.url)
    )
