"""Faults: scripted misbehaviour, matched to requests, counted, and the same in every run."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import msgspec

from graphsim.clock import Clock, SystemClock
from graphsim.fault_kinds import FAULT_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

KINDS = frozenset(FAULT_KINDS)


class Match(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which requests a fault applies to; every given field must agree."""

    op: str | None = None
    """``drive``, ``item``, ``children``, ``delta``, ``content``, ``download``, ``token`` …"""
    item: str | None = None
    """An item id."""
    name: str | None = None
    """An item's name, for ``item``, ``content`` and ``download``."""
    url: str | None = None
    """A part of the URL as it was sent."""
    pattern: str | None = None
    """A regular expression that is found somewhere in the URL."""
    drive: str | None = None
    method: str | None = None
    page: int | None = None
    """For ``delta`` and ``children``: which page of the list, from 1."""
    flow: str | None = None
    """For ``token``: ``client_credentials``, ``refresh_token``, ``authorization_code`` or
    ``device_code``."""
    user: str | None = None
    """For ``token``: the user principal name of the person whose token it is about."""
    client: str | None = None
    """The client id, of a request for a token or of the app whose token a request carries."""


class Fault(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One scripted misbehaviour; the kinds are in :data:`graphsim.fault_kinds.FAULT_KINDS`."""

    kind: str
    match: Match = msgspec.field(default_factory=Match)
    # --- how often and when ---
    skip: int = 0
    """Let so many matching requests pass first."""
    count: int = 1
    """Apply to so many requests; -1 for every one until removed."""
    each: bool = False
    """Count for each operation, item and page by itself: "once for each file"."""
    probability: float = 1.0
    """The chance that a matching request counts at all; drawn from the seed."""
    wait: float = 0.0
    """Seconds of graphsim's clock until it can strike."""
    lasts: float | None = None
    """Seconds of graphsim's clock during which it can strike, after the wait."""
    # --- what it does ---
    status: int = 503
    code: str | None = None
    inner: str | None = None
    message: str = "graphsim was told to refuse this request."
    retry_after: str | None = None
    headers: dict[str, str] = {}
    aadsts: int | None = None
    after: int = 0
    seconds: float = 0.0
    size: int = 10_000_000
    location: bool = True
    with_length: bool = False
    fresh: bool = False
    fields: list[str] = []
    values: dict[str, Any] = {}
    only: list[str] = []
    """Ids or names of the items of a page that are meant; all of them when empty."""
    extra: str = ""
    keep: int | None = None
    number: int = 1
    share: float = 1.0
    least: int = 0
    most: int = 10
    host: str = "graph.attacker.invalid"
    # --- kept by graphsim ---
    id: int = 0
    """Set when the fault is added."""
    added: float = 0.0
    """The time of that."""
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
    page: int | None = None
    flow: str | None = None
    user: str | None = None
    client: str | None = None

    @property
    def key(self) -> tuple[str, str | None, str | None, int | None]:
        """What is the same for the same request in another run: URLs hold random tokens."""
        return (self.op, self.drive, self.item, self.page)


class Faults:
    """The faults that are waiting, in the order they were added.

    Args:
        clock: Decides when a fault waits and ends.
        seed: Every draw follows from it, from the fault's number and from what was asked.
    """

    def __init__(self, clock: Clock | None = None, seed: int = 0) -> None:
        self._clock = clock or SystemClock()
        self.seed = seed
        self._faults: list[Fault] = []
        self._added = 0
        self._tallies: dict[tuple[int, object], list[int]] = {}
        self._seen: dict[tuple[int, object], int] = {}

    def add(self, kind: str, *, match: Match | None = None, **options: Any) -> Fault:
        """Add a fault; match fields may be given as ``op=``, ``item=``, ``url=`` … directly.

        Raises:
            ValueError: There is no such kind of fault, or it does not take an option.
        """
        own = {name: options.pop(name) for name in Match.__struct_fields__ if name in options}
        return self.insert(Fault(kind=kind, match=match or Match(**own), **options))

    def insert(self, fault: Fault) -> Fault:
        """Add a complete fault and give it its number.

        Raises:
            ValueError: As for :meth:`add`.
        """
        _check(fault)
        self._added += 1
        fault.id, fault.added = self._added, self._clock.now()
        if fault.kind == "throttle":
            fault.kind, fault.status = "status", 429
            fault.code = fault.code or "activityLimitReached"
        self._faults.append(fault)
        return fault

    def clear(self, identifier: int | None = None) -> None:
        """Remove one fault, or all of them."""
        self._faults = [one for one in self._faults if identifier and one.id != identifier]

    def begin_again(self, seed: int) -> None:
        """Remove all faults and forget what was counted; numbers and draws begin anew.

        What is scripted from here on plays as it would in a fresh graphsim with this seed.
        """
        self.seed = seed
        self._added = 0
        self._faults.clear()
        self._tallies.clear()
        self._seen.clear()

    def waiting(self) -> list[Fault]:
        """Return the faults that can still strike, now or later."""
        return [fault for fault in self._faults if fault.count and not self._is_over(fault)]

    def take(self, asked: Asked, *kinds: str) -> Fault | None:
        """Return the first waiting fault of these kinds that matches, and count it as used."""
        for fault in self._faults:
            if fault.kind in kinds and self._is_armed(fault) and _matches(fault.match, asked):
                key = (fault.id, asked.key)
                if self._is_drawn(fault, key) and self._counted(fault, key):
                    fault.hits += 1
                    return fault
        return None

    def draw(self, fault: Fault, what: object) -> float:
        """Return a number from 0 to 1 that follows from the seed, a fault and anything else."""
        text = f"{self.seed}:{fault.id}:{what}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big") / (1 << 56)

    def _is_over(self, fault: Fault) -> bool:
        ends = fault.added + fault.wait + (fault.lasts or 0)
        return fault.lasts is not None and self._clock.now() >= ends

    def _is_armed(self, fault: Fault) -> bool:
        return (
            fault.count != 0
            and self._clock.now() >= fault.added + fault.wait
            and not self._is_over(fault)
        )

    def _is_drawn(self, fault: Fault, key: tuple[int, object]) -> bool:
        if fault.probability >= 1.0:
            return True
        number = self._seen[key] = self._seen.get(key, 0) + 1
        return self.draw(fault, (key[1], number)) < fault.probability

    def _counted(self, fault: Fault, key: tuple[int, object]) -> bool:
        """Use up one of the requests to skip or to strike; tell which it was."""
        if fault.each:
            tally = self._tallies.setdefault(key, [fault.skip, fault.count])
            if tally[0]:
                tally[0] -= 1
                return False
            strikes = tally[1] != 0
            tally[1] -= 1 if tally[1] > 0 else 0
            return strikes
        if fault.skip:
            fault.skip -= 1
            return False
        fault.count -= 1 if fault.count > 0 else 0
        return True


def _check(fault: Fault) -> None:
    kind = FAULT_KINDS.get(fault.kind)
    if kind is None:
        known = ", ".join(sorted(KINDS))
        raise ValueError(f"There is no fault called {fault.kind}; choose from {known}.")
    usual = Fault(kind=fault.kind)
    for name in _own_options():
        if name not in kind.options and getattr(fault, name) != getattr(usual, name):
            message = f"The fault {fault.kind} takes no {name}; it takes {', '.join(kind.options)}."
            raise ValueError(message)
    if fault.match.pattern is not None:
        re.compile(fault.match.pattern)


def _own_options() -> Iterable[str]:
    return {option for kind in FAULT_KINDS.values() for option in kind.options}


def _matches(match: Match, asked: Asked) -> bool:
    return (
        match.op in {None, asked.op}
        and match.item in {None, asked.item}
        and match.name in {None, asked.name}
        and match.drive in {None, asked.drive}
        and match.page in {None, asked.page}
        and match.flow in {None, asked.flow}
        and match.user in {None, asked.user}
        and match.client in {None, asked.client}
        and (match.method is None or match.method.upper() == asked.method)
        and (match.url is None or match.url in asked.url)
        and (match.pattern is None or re.search(match.pattern, asked.url) is not None)
    )
