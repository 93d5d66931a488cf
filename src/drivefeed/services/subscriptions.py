"""Keeps Microsoft telling us of changes: asks, prolongs, asks anew, ends. Polling goes on anyway.

A subscription is written down before it is asked for, so that whatever a lost answer left behind
is found at Microsoft and ended; and it is granted before the look that follows it, so that nothing
falls between the two.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drivefeed.catalog import subscriptions as rows
from drivefeed.catalog.heartbeats import take_lease
from drivefeed.catalog.subscriptions_due import Due, due_subscriptions
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import DrivefeedError, NotFound, PartDown, Throttled
from drivefeed.domain.redact import redact
from drivefeed.domain.remote import DriveRef
from drivefeed.domain.subscription import (
    LIFECYCLE,
    LONGEST_MS,
    PATH,
    SILENCE_MS,
    Subscription,
    SubscriptionState,
    is_silent,
    retry_after_ms,
    secret_hash,
)
from drivefeed.ports import SubscriptionWish
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.subscriptions import Watched
    from drivefeed.ports import ChangeNotifications

TICK_SECONDS: Final = 5.0
_LEASE: Final = "subscriptions"
_LEASE_MS: Final = 120_000
_SECRET_BYTES: Final = 32

_log = log("subscriptions")


@dataclass(frozen=True, slots=True)
class Subscribing:
    """What keeps the subscriptions of all drives.

    Args:
        url: our address as Microsoft reaches it, without a slash at the end; empty to end what
            there is.
        lifetime_ms: for how long one is asked.
        owner: this process, of which one at a time does so.
        silence_ms: a change that was found and not told of for so long shows that nobody tells us.
    """

    catalog: Catalog
    source: ChangeNotifications
    url: str
    lifetime_ms: int
    owner: str
    silence_ms: int = SILENCE_MS

    async def tick(self) -> None:
        """Do for each drive what is due; what fails is noted and tried later."""
        due = await self._due()
        if not due.to_end and not due.to_ask:
            return
        if await take_lease(self.catalog, _LEASE, self.owner, for_ms=_LEASE_MS) is None:
            return
        # Another process may have done it before the lease was ours.
        due = await self._due()
        for one in due.to_end:
            await self._end(one)
        for drive in due.to_ask:
            await self._look_after(drive)

    async def _due(self) -> Due:
        return await due_subscriptions(
            self.catalog, wants=bool(self.url), silence_ms=self.silence_ms
        )

    @staticmethod
    def _is_misplaced(drive: Watched) -> bool:
        """Whether it was asked for through an account that no longer reads the drive."""
        return drive.subscription is not None and drive.subscription.account_id != drive.account_id

    async def _look_after(self, drive: Watched) -> None:
        one = drive.subscription
        if self._is_dead(drive):
            _log.warning("subscription_silent", drive=drive.name)
        elif one is not None and one.remote_id is not None and not self._is_misplaced(drive):
            await self._renew(drive, one)
            return
        await self._ask(drive)

    async def _ask(self, drive: Watched) -> None:
        """Ask anew; what was there before, also what an answer that was lost left, is ended."""
        ref = DriveRef(drive.account_id, drive.remote_id)
        before = drive.subscription
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        one = await rows.note_asked(self.catalog, drive, secret_hash=secret_hash(secret))
        address = f"{self.url}{PATH}{one.subscription_id}"
        wish = SubscriptionWish(address, address + LIFECYCLE, secret, self._expiry())
        try:
            if before is not None:
                await self._end_all(ref, before)
            with passing(self.catalog.checkpoint, "subscription.create"):
                granted = await self.source.subscribe(ref, wish)
        except DrivefeedError as error:
            await self._refused(drive.name, one, error)
            return
        await rows.note_granted(
            self.catalog, one, remote_id=granted.remote_id, expires_at=granted.expires_at
        )
        _log.info("subscribed", drive=drive.name)

    async def _renew(self, drive: Watched, one: Subscription) -> None:
        ref = DriveRef(drive.account_id, drive.remote_id)
        assert one.remote_id is not None
        try:
            with passing(self.catalog.checkpoint, "subscription.renew"):
                granted = await self.source.renew(ref, one.remote_id, expires_at=self._expiry())
        except NotFound:
            await self._ask(drive)
            return
        except DrivefeedError as error:
            await self._refused(drive.name, one, error)
            return
        await rows.note_granted(
            self.catalog, one, remote_id=granted.remote_id, expires_at=granted.expires_at
        )

    async def _end(self, one: Subscription) -> None:
        ref = DriveRef(one.account_id, one.drive_remote_id)
        try:
            if one.expires_at is None or self.catalog.clock.now() < one.expires_at:
                await self._end_all(ref, one)
        except (PartDown, Throttled) as error:
            await self._refused("", one, error)
            return
        except DrivefeedError as error:
            # Nobody may end it for us: it ends by itself, and its word is not listened to.
            _log.warning("subscription_left", error=redact(str(error)))
        await rows.forget_subscription(self.catalog, one)

    async def _end_all(self, ref: DriveRef, one: Subscription) -> None:
        """End a subscription, by its id or, where the answer was lost, by its address."""
        known = [one.remote_id] if one.remote_id else []
        if not known and self.url:
            known = await self.source.subscribed(ref, self.url + PATH)
        for remote_id in known:
            with passing(self.catalog.checkpoint, "subscription.end"):
                await self.source.unsubscribe(ref, remote_id)

    async def _refused(self, name: str, one: Subscription, error: DrivefeedError) -> None:
        now = self.catalog.clock.now()
        wait = retry_after_ms(one.failures + 1)
        if isinstance(error, Throttled):
            wait = max(wait, round(error.seconds * 1000))
        words = redact(str(error))
        _log.warning("subscription_refused", drive=name, error=words)
        await rows.note_refused(
            self.catalog,
            one,
            detail=words,
            retry_at=now + wait,
            is_lost=one.state is not SubscriptionState.LIVE or not one.is_live(now + wait),
        )

    def _expiry(self) -> int:
        return self.catalog.clock.now() + min(self.lifetime_ms, LONGEST_MS)

    def _is_dead(self, drive: Watched) -> bool:
        one = drive.subscription
        if one is None or one.state is not SubscriptionState.LIVE:
            return False
        return is_silent(
            asked_at=one.asked_at,
            told_at=drive.told_at,
            changed_at=drive.changed_at,
            now=self.catalog.clock.now(),
            silence_ms=self.silence_ms,
        )
