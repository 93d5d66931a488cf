"""Notices: a scheduled look derives the troubles there are, and channels are told of them.

Nothing here is asked of anybody but the catalog, and whatever happens to a channel stays with that
channel: it waits, is tried again, and is given up after a day.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Protocol

from drivefeed.catalog.heartbeats import take_lease
from drivefeed.catalog.notice_deliveries import claim, drop_unknown, mark_delivered, mark_failed
from drivefeed.catalog.notices import reconcile
from drivefeed.catalog.parts_down import Down
from drivefeed.catalog.troubles import gather_facts, waiting_since
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import DrivefeedError, Throttled, Transient
from drivefeed.domain.notices import DAY_MS, NoticeKind
from drivefeed.domain.redact import redact
from drivefeed.domain.retry import backoff_ms
from drivefeed.services.connection_troubles import Rules, connection_troubles, may_be_idle
from drivefeed.services.troubles import (
    account_troubles,
    disk_troubles,
    part_troubles,
    quota_troubles,
)
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.notice_deliveries import Claimed
    from drivefeed.catalog.troubles import Facts
    from drivefeed.domain.notices import Message, Subscription, Trouble

SEND_SECONDS = 60.0
"""How long one message may take."""
GIVE_UP_AFTER_MS = DAY_MS
_BUSY_MS = 2 * int(SEND_SECONDS * 1000)
_FIRST_WAIT_MS = 30_000
_LONGEST_WAIT_MS = 3600 * 1000
_MOST_AT_ONCE = 20
_IDLE_FOR_MS = 30 * 60 * 1000
"""How long files must be seen to wait too long: after quiet hours or an outage they only begin."""
_REST = 20
"""A look is followed by a rest of so many times its own length, however short the interval."""

_log = log("notices")


class Channel(Protocol):
    """A way to somebody; see :mod:`drivefeed.notices.channel`."""

    @property
    def subscription(self) -> Subscription:
        """What it wants to be told."""
        ...

    async def send(self, message: Message) -> str:
        """Send a message; return what the server answered, without secrets.

        Raises:
            DrivefeedError: it was not taken; the sentence says why.
        """
        ...


async def send_within(channel: Channel, message: Message, *, seconds: float | None = None) -> str:
    """Send a message; return what the server answered.

    Args:
        seconds: how long it may take as a whole, :data:`SEND_SECONDS` by default.

    Raises:
        DrivefeedError: it was not taken, or not in that time; the sentence says why.
    """
    limit = SEND_SECONDS if seconds is None else seconds
    try:
        async with asyncio.timeout(limit):
            return await channel.send(message)
    except TimeoutError:
        raise Transient(
            f"The server of channel '{channel.subscription.channel}' did not take it within "
            f"{limit:.0f} seconds."
        ) from None


class Notices:
    """Looks for trouble and tells of it.

    Args:
        owner: names this process; of several, one looks and sends at a time.
        channels: where notices go; none is fine, they are kept in the catalog all the same.
        open_parts: what this process finds down, with the last words about each; what others
            find is in the catalog.
    """

    def __init__(
        self,
        catalog: Catalog,
        channels: Sequence[Channel],
        *,
        owner: str,
        rules: Rules | None = None,
        look_ms: int = 60_000,
        open_parts: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._catalog = catalog
        self._channels = channels
        self._owner = owner
        self._rules = rules or Rules()
        self._look_ms = look_ms
        self._open_parts = open_parts
        self._down_since: dict[str, int] = {}
        self._idle_since: dict[str, int] = {}
        self._began_at = catalog.clock.now()
        self._rests_until = 0.0

    async def tick(self) -> None:
        """Look, if it is time and this process is the one to do so, and send what is due."""
        self._watch_parts()
        held = await take_lease(self._catalog, "notices", self._owner, for_ms=2 * self._look_ms)
        if held is None:
            return
        begun = time.monotonic()
        if begun >= self._rests_until:
            await self.look()
            ended = time.monotonic()
            self._rests_until = ended + _REST * (ended - begun)
        await self.deliver()

    async def look(self) -> None:
        """Make the open notices those of the troubles that there are now."""
        now = self._catalog.clock.now()
        self._watch_parts()
        facts = await gather_facts(self._catalog)
        troubles = await self._troubles_in(facts)
        # Parts that were down may still be: a process that has just started does not know yet.
        is_new = now - max(self._began_at, facts.youngest_start) < self._rules.down_ms
        change = await reconcile(
            self._catalog,
            troubles,
            [one.subscription for one in self._channels],
            keep={NoticeKind.PART_DOWN} if is_new else (),
        )
        if change.opened or change.closed:
            _log.info("notices", opened=len(change.opened), over=len(change.closed))

    async def troubles(self) -> list[Trouble]:
        """Return what is wrong now."""
        return await self._troubles_in(await gather_facts(self._catalog))

    async def _troubles_in(self, facts: Facts) -> list[Trouble]:
        now = self._catalog.clock.now()
        self._idle_since = {
            one.connection_id: self._idle_since.get(one.connection_id, now)
            for one in facts.connections
            if may_be_idle(one, self._rules, now=now)
        }
        suspects = [key for key, at in self._idle_since.items() if now - at >= _IDLE_FOR_MS]
        waiting = await waiting_since(self._catalog, suspects) if suspects else {}
        return [
            *account_troubles(facts, self._rules, now=now),
            *connection_troubles(facts, self._rules, waiting, now=now),
            *quota_troubles(facts.orgs),
            *disk_troubles(facts),
            *part_troubles(self._down_in(facts), self._rules, now=now),
        ]

    def _watch_parts(self) -> None:
        down = self._open_parts()
        now = self._catalog.clock.now()
        self._down_since = {name: self._down_since.get(name, now) for name in down}

    def _down_in(self, facts: Facts) -> dict[str, Down]:
        """Return what this process or another finds down, since the first of them did."""
        found = dict(facts.down)
        for name, words in self._open_parts().items():
            since = self._down_since.get(name, self._catalog.clock.now())
            if name not in found or since <= found[name].since:
                found[name] = Down(since, words)
        return found

    async def deliver(self) -> None:
        """Send what is due to all channels side by side; failures are recorded, not raised."""
        await drop_unknown(self._catalog, [one.subscription.channel for one in self._channels])
        async with asyncio.TaskGroup() as group:
            for channel in self._channels:
                group.create_task(self._send_due(channel))

    async def _send_due(self, channel: Channel) -> None:
        wanted = channel.subscription
        for _ in range(_MOST_AT_ONCE):
            claimed = await claim(
                self._catalog, wanted.channel, digest_ms=wanted.digest_ms, busy_ms=_BUSY_MS
            )
            if claimed is None:
                return
            await self._send(channel, claimed)

    async def _send(self, channel: Channel, claimed: Claimed) -> None:
        try:
            with passing(self._catalog.checkpoint, "notice.send"):
                answer = await send_within(channel, claimed.message)
        except DrivefeedError as error:
            least = int(error.seconds * 1000) if isinstance(error, Throttled) else 0
            await self._failed(claimed, str(error), least_ms=least)
        except Exception as error:  # noqa: BLE001 - a channel never disturbs the daemon
            _log.error("notice_failed", channel=claimed.channel, exc_info=True)
            await self._failed(claimed, f"{type(error).__name__}: {error}")
        else:
            await mark_delivered(self._catalog, claimed, answer=redact(answer))
            _log.info("notice_sent", channel=claimed.channel, message_key=claimed.message.key)

    async def _failed(self, claimed: Claimed, words: str, *, least_ms: int = 0) -> None:
        now = self._catalog.clock.now()
        wait = max(
            least_ms,
            backoff_ms(
                claimed.attempts + 1,
                fraction=self._catalog.ids.fraction(),
                first_ms=_FIRST_WAIT_MS,
                longest_ms=_LONGEST_WAIT_MS,
            ),
        )
        gives_up = now + wait - claimed.made_at >= GIVE_UP_AFTER_MS
        words = redact(words)
        await mark_failed(
            self._catalog, claimed, words=words, again_at=None if gives_up else now + wait
        )
        tell = _log.error if gives_up else _log.warning
        tell(
            "notice_given_up" if gives_up else "notice_waits",
            channel=claimed.channel,
            message_key=claimed.message.key,
            error=words,
        )
