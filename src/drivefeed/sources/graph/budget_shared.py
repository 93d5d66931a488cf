"""The book of a budget in Redis, where all processes spend from it; its pages are ``budget.lua``.

Everything is decided in one script on Redis's clock, so it makes no difference how many processes
ask or what their clocks say.

**Redis is away**: each process goes on with a part of the budget that nobody else has. One that
has been a member for a while, and has lately been told how many members there are, takes one part
of (members + 1); everybody else takes :data:`NEWCOMER` of the share. Members of some standing all
know of each other, so n of them spend n parts of at most n + 1; the part that is left over is for
those who came too late to be known, or have not asked for long. So the sum stays within the share
unless dozens of processes start while Redis is away, and those find no jobs there either.

**Redis was emptied**: the book begins anew with what one request needs, and whoever asks first
brings the closure that it remembers.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, Protocol

from drivefeed.domain.budget import Lane
from drivefeed.domain.errors import PartDown
from drivefeed.sources.graph.budget import Count, Verdict
from drivefeed.sources.graph.budget_book import LocalBook
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drivefeed.domain.budget import Budget, Remaining
    from drivefeed.ports import Clock
    from drivefeed.sources.graph.budget import Ticket

NEWCOMER: Final = 1 / 32
"""The part of our share that a process takes which others may not know of."""
KNOWN_AFTER_MS: Final = 30_000
"""A member that asked so long ago for the first time is known to all that asked since."""
_FORGOTTEN_AFTER_MS: Final = 90_000
"""A member that asks for nothing for so long is none any more; the script counts so too."""
TRIED_AGAIN_MS: Final = 5_000
"""Between two tries to reach a Redis that was away."""

_log = log("budget")


class Script(Protocol):
    """Runs a Lua script in Redis."""

    async def __call__(self, keys: Sequence[str], args: Sequence[str | int | float]) -> list[Any]:
        """Run it, whether or not Redis still has it.

        Raises:
            PartDown: Redis does not answer soon.
        """
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


def script_text() -> str:
    """Return the script that keeps the books."""
    return files("drivefeed.sources.graph").joinpath("budget.lua").read_text("utf-8")


@dataclass(frozen=True, slots=True)
class _Answer:
    go: int
    wait: int
    why: str
    since: int
    closed: int
    throttled: int
    members: int
    age: int
    minute: int
    day: int
    waiting: tuple[int, ...]


class SharedBook:
    """A budget for all processes that name the same keys.

    Args:
        script: runs :func:`script_text`.
        name: of the book; comes with the prefix of all keys.
        member: this process.
        clock: for what is remembered here, and for a Redis that is away.
        follows_clock: whether the book counts by ``clock`` too, rather than by Redis's own.
    """

    def __init__(
        self,
        budget: Budget,
        script: Script,
        *,
        name: str,
        member: str,
        clock: Clock,
        follows_clock: bool = False,
    ) -> None:
        self._budget = budget
        self._script = script
        # In a cluster, the braces keep all of them on one node.
        self._keys = [f"{{{name}}}:{key}" for key in ("book", "line", "spent", "members")]
        self._member = member
        self._clock = clock
        self._follows_clock = follows_clock
        self._opens_at = 0
        self._member_since: int | None = None
        self._told_at = 0
        self._members = 1
        self._away_until: int | None = None
        self._own: LocalBook | None = None
        self._reported = 0

    @property
    def budget(self) -> Budget:
        """What may be spent, by all processes together."""
        return self._budget

    # --- the port ------------------------------------------------------------------------------

    async def ask(self, ticket: Ticket) -> Verdict:
        """See :class:`drivefeed.sources.graph.budget.Book`."""
        said = await self._asked(
            "ask", ticket.name, int(ticket.lane), ticket.cost, ticket.since, ticket.behind
        )
        if said is None:
            return await self._alone().ask(ticket)
        self._note_members(said)
        return Verdict(
            go=bool(said.go),
            wait_ms=said.wait,
            why=said.why,
            since=said.since,
            throttled_ms=said.throttled,
        )

    async def leave(self, ticket: Ticket) -> None:
        """See :class:`drivefeed.sources.graph.budget.Book`."""
        if self._own is not None:
            await self._own.leave(ticket)
        await self._asked("leave", ticket.name)

    async def close(self, told_ms: int | None, jitter: float) -> int:
        """See :class:`drivefeed.sources.graph.budget.Book`."""
        said = await self._asked("close", "" if told_ms is None else told_ms, jitter)
        if said is not None:
            return said.closed
        closed = await self._alone().close(told_ms, jitter)
        self._opens_at = max(self._opens_at, self._clock.now() + closed)
        return closed

    async def passed(self, told: Remaining | None) -> None:
        """See :class:`drivefeed.sources.graph.budget.Book`."""
        what = ("", "", "") if told is None else (told.limit, told.left, told.reset_ms)
        if await self._asked("passed", *what) is None:
            await self._alone().passed(told)

    async def count(self) -> Count:
        """See :class:`drivefeed.sources.graph.budget.Book`."""
        said = await self._asked("look")
        if said is None:
            return await self._alone().count()
        return Count(
            used_minute=said.minute,
            used_day=said.day,
            closed_ms=said.closed,
            throttled_ms=said.throttled,
            waiting={lane: said.waiting[lane] for lane in Lane if said.waiting[lane]},
            is_shared=True,
        )

    # --- Redis ---------------------------------------------------------------------------------

    async def _asked(self, operation: str, *what: str | float) -> _Answer | None:
        """Run the script; None where Redis is away."""
        now = self._clock.now()
        if self._away_until is not None and now < self._away_until:
            return None
        spent = 0 if self._own is None else self._own.spent
        elsewhere = spent - self._reported
        if operation == "look":
            elsewhere = 0
        args = [
            operation,
            now if self._follows_clock else "",
            self._member,
            self.budget.rate,
            self.budget.burst,
            self.budget.share,
            self.budget.our_day,
            max(0, self._opens_at - now),
            elsewhere,
            *what,
        ]
        self._reported += elsewhere
        try:
            said = _answer(await self._script(self._keys, args))
        except PartDown as error:
            self._reported -= elsewhere
            if self._away_until is None:
                part = round(100 * self.fraction)
                _log.warning("budget_not_shared", error=str(error), percent_of_share=part)
            self._away_until = self._clock.now() + TRIED_AGAIN_MS
            return None
        if self._away_until is not None:
            _log.info("budget_shared_again")
        self._away_until = None
        if self._own is not None and operation != "look":
            self._own, self._reported = None, 0
        if said.closed:
            self._opens_at = max(self._opens_at, self._clock.now() + said.closed)
        return said

    def _note_members(self, said: _Answer) -> None:
        now = self._clock.now()
        if self._member_since is None or now - self._told_at > _FORGOTTEN_AFTER_MS:
            self._member_since = now
        # A Redis that was emptied has forgotten its members, and knows only those that came since.
        self._member_since = max(self._member_since, now - said.age)
        self._told_at, self._members = now, said.members

    # --- without it ----------------------------------------------------------------------------

    @property
    def fraction(self) -> float:
        """The part of our share that this process may spend while Redis is away."""
        now = self._clock.now()
        is_known = (
            self._member_since is not None and self._told_at - self._member_since >= KNOWN_AFTER_MS
        )
        if is_known and now - self._told_at < KNOWN_AFTER_MS:
            return 1 / (self._members + 1)
        return min(NEWCOMER, 1 / (self._members + 1))

    def _alone(self) -> LocalBook:
        if self._own is None:
            part = self.budget.part(self.fraction)
            self._own = LocalBook(part, self._clock, is_full=False)
            if self._opens_at > self._clock.now():
                self._own.close_until(self._opens_at)
        return self._own


def _answer(raw: list[Any]) -> _Answer:
    go, wait, why, since, closed, throttled, members, age, minute, day, *waiting = raw
    return _Answer(
        int(go),
        int(wait),
        why.decode() if isinstance(why, bytes) else str(why),
        int(since),
        int(closed),
        int(throttled),
        int(members),
        int(age),
        int(minute),
        int(day),
        tuple(int(one) for one in waiting),
    )
