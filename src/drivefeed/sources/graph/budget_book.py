"""The book of a budget in this process's memory; the twin of ``budget.lua``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drivefeed.domain.budget import COST_PERMISSIONS, DAY_PART, GUARANTEED, Lane
from drivefeed.sources.graph.budget import Count, Verdict
from drivefeed.sources.graph.waits import LONGEST_WAIT

if TYPE_CHECKING:
    from collections.abc import Container

    from drivefeed.domain.budget import Budget, Remaining
    from drivefeed.ports import Clock
    from drivefeed.sources.graph.budget import Ticket

SLOT_MS: Final = 5_000
SLOTS: Final = 12
HOUR_MS: Final = 3_600_000
HOURS: Final = 25
"""Whole hours that are added up for a day: the oldest is partly over, and the last not yet full."""
GRACE_MS: Final = 250
"""So late may one come back without being passed by."""
LONGEST_CLOSURE_MS: Final = int(LONGEST_WAIT * 1000)
LONGEST_TURN_MS: Final = 1_000
"""Who waits in line asks again after this time: a closure may have come between."""
FIRST_GUESS_MS: Final = 5_000
LAST_GUESS_MS: Final = 120_000
MOST_CREDIT: Final = 2.0 * COST_PERMISSIONS
_SAME_WINDOW_MS: Final = 2_000


@dataclass(slots=True)
class _Waiting:
    ticket: Ticket
    since: int
    due: int

    @property
    def place(self) -> tuple[int, str]:
        return (self.since, self.ticket.name)


class LocalBook:
    """A budget for one process.

    Args:
        clock: tells the time.
        is_full: whether it begins with a whole burst; one that takes over from another does not.
    """

    def __init__(self, budget: Budget, clock: Clock, *, is_full: bool = True) -> None:
        self._budget = budget
        self._clock = clock
        self._tokens = budget.burst if is_full else 0.0
        self._at = clock.now()
        self._opens = 0
        self._since = 0
        """When the throttling began that goes on."""
        self._guesses = 0
        self._limit, self._limit_until = 0, 0
        self._left, self._left_until = 0.0, 0
        self._credit = dict.fromkeys(GUARANTEED, 0.0)
        self._line: dict[str, _Waiting] = {}
        self.spent = 0
        """Units since the beginning."""
        self._minutes: Counter[int] = Counter()
        self._hours: Counter[int] = Counter()

    @property
    def budget(self) -> Budget:
        """What may be spent."""
        return self._budget

    # --- the port ------------------------------------------------------------------------------

    async def ask(self, ticket: Ticket) -> Verdict:
        """See :class:`drivefeed.sources.graph.budget.Book`."""
        now = self._refilled()
        since = ticket.since if 0 < ticket.since <= now else now
        self._line.pop(ticket.name, None)
        wait, why = self._not_now(ticket, now)
        if wait:
            return self._refused(wait, why, since, now)
        others = self._present(now)
        me = _Waiting(ticket, since, now)
        everybody = [*others, me]
        top = min(one.ticket.lane for one in everybody)
        heads = {
            lane: min((one for one in everybody if one.ticket.lane is lane), key=_place)
            for lane in {one.ticket.lane for one in everybody}
        }
        first = self._with_credit(heads, top)
        ahead = 0
        if first is not me:
            ahead = sum(one.ticket.cost for one in others if one is first or _goes_before(one, me))
        # Sums of fractions differ in their last digit.
        missing = ahead + min(float(ticket.cost), self.budget.burst) - self._tokens - 1e-6
        if missing <= 0:
            self._go(ticket, top, heads.keys(), now)
            return Verdict(go=True, since=since, throttled_ms=self._throttled(now))
        pace = self._pace(now)
        turn = LONGEST_TURN_MS
        if pace > 0:
            turn = max(1, min(turn, -int(-missing // pace)))
        self._line[ticket.name] = _Waiting(ticket, since, now + turn)
        return self._refused(turn, "line", since, now)

    async def leave(self, ticket: Ticket) -> None:
        """See :class:`drivefeed.sources.graph.budget.Book`."""
        self._line.pop(ticket.name, None)

    async def close(self, told_ms: int | None, jitter: float) -> int:
        """See :class:`drivefeed.sources.graph.budget.Book`."""
        now = self._refilled()
        if told_ms is not None:
            self.close_until(now + min(told_ms, LONGEST_CLOSURE_MS))
        elif self._opens <= now:
            # Only the first of several refusals in flight counts as a new guess.
            guess = min(FIRST_GUESS_MS * 2**self._guesses, LAST_GUESS_MS)
            self._guesses = min(self._guesses + 1, 30)
            self.close_until(now + int(guess * (0.5 + jitter / 2)))
        return max(0, self._opens - now)

    async def passed(self, told: Remaining | None) -> None:
        """See :class:`drivefeed.sources.graph.budget.Book`."""
        now = self._refilled()
        if self._opens <= now:
            self._guesses = self._since = 0
        if told is None:
            return
        if told.limit > 0:
            self._limit, self._limit_until = told.limit, now + HOUR_MS
        if told.reset_ms > 0:
            # Requests in flight are not in Microsoft's count yet.
            left: float = told.left - max(5, int(told.limit * 0.02))
            until = now + told.reset_ms
            if self._left_until > now and abs(until - self._left_until) <= _SAME_WINDOW_MS:
                # Several answers tell of one window: the least is the latest.
                left = min(left, self._left)
            self._left, self._left_until = left, until

    async def count(self) -> Count:
        """See :class:`drivefeed.sources.graph.budget.Book`."""
        now = self._refilled()
        waiting: Counter[Lane] = Counter()
        for one in self._present(now):
            waiting[one.ticket.lane] += one.ticket.behind
        return Count(
            used_minute=sum(self._minutes.values()),
            used_day=sum(self._hours.values()),
            closed_ms=max(0, self._opens - now),
            throttled_ms=self._throttled(now),
            waiting=waiting,
            is_shared=False,
        )

    def close_until(self, instant: int) -> None:
        """Let nobody go before an instant; afterwards it goes on at its pace, without a burst."""
        self._opens = max(self._opens, instant)
        self._since = self._since or self._clock.now()
        self._tokens = min(self._tokens, 0.0)
        self._at = max(self._at, self._opens)

    # --- what is spent -------------------------------------------------------------------------

    def _refilled(self) -> int:
        now = self._clock.now()
        self._opens = min(self._opens, now + LONGEST_CLOSURE_MS)
        if self._at > now and self._at > self._opens:
            self._at = now  # the clock was set back
        if self._at < self._left_until <= now:
            # What was left of a window is spent from that window; nothing of it is earned again.
            self._at = self._left_until
        if now > self._at:
            earned = (now - self._at) * self._pace(now)
            self._tokens = min(self.budget.burst, self._tokens + earned)
            self._at = now
        if self._left_until > now:
            self._tokens = min(self._tokens, max(self._left, 0.0))
        _forget(self._minutes, now // SLOT_MS - SLOTS)
        _forget(self._hours, now // HOUR_MS - HOURS)
        return now

    def _pace(self, now: int) -> float:
        """Return units a millisecond."""
        found = self.budget.rate
        if self._limit_until > now:
            found = min(found, self._limit * self.budget.share / 60_000)
        if self._left_until > now:
            found = min(found, max(self._left, 0.0) / (self._left_until - now))
        return found

    def _go(self, ticket: Ticket, top: Lane, lanes: Container[Lane], now: int) -> None:
        lane, cost = ticket.lane, ticket.cost
        self._tokens -= cost
        self._left -= cost
        self.spent += cost
        if cost:
            self._minutes[now // SLOT_MS] += cost
            self._hours[now // HOUR_MS] += cost
        if lane > top:
            self._credit[lane] = max(0.0, self._credit[lane] - cost)
        for each, part in GUARANTEED.items():
            if each > lane and each in lanes:
                self._credit[each] = min(MOST_CREDIT, self._credit[each] + cost * part)

    # --- whose turn it is ----------------------------------------------------------------------

    def _not_now(self, ticket: Ticket, now: int) -> tuple[int, str]:
        if self._opens > now:
            return self._opens - now, "closed"
        most = self.budget.our_day * DAY_PART[ticket.lane]
        if sum(self._hours.values()) + ticket.cost > most:
            oldest = min(self._hours, default=0)
            return max(1, (oldest + HOURS) * HOUR_MS - now), "day"
        if self._left_until > now and self._left < ticket.cost:
            return self._left_until - now, "closed"
        return 0, ""

    def _with_credit(self, heads: dict[Lane, _Waiting], top: Lane) -> _Waiting | None:
        """Return who is to go before more urgent ones, because its lane had too little."""
        due = [
            lane
            for lane, head in heads.items()
            if lane > top and self._credit[lane] >= head.ticket.cost
        ]
        return heads[max(due, key=lambda lane: (self._credit[lane], -lane))] if due else None

    def _present(self, now: int) -> list[_Waiting]:
        """Return who waits. Whoever did not come back in time ended or is busy: it is passed."""
        late = [name for name, one in self._line.items() if now > one.due + GRACE_MS]
        for name in late:
            del self._line[name]
        return list(self._line.values())

    def _refused(self, wait: int, why: str, since: int, now: int) -> Verdict:
        return Verdict(
            go=False, wait_ms=wait, why=why, since=since, throttled_ms=self._throttled(now)
        )

    def _throttled(self, now: int) -> int:
        return max(1, now - self._since) if self._since else 0


def _place(one: _Waiting) -> tuple[int, str]:
    return one.place


def _goes_before(one: _Waiting, me: _Waiting) -> bool:
    lane, mine = one.ticket.lane, me.ticket.lane
    return lane < mine or (lane == mine and one.place < me.place)


def _forget(counts: Counter[int], until: int) -> None:
    for slot in [slot for slot in counts if slot <= until]:
        del counts[slot]
