"""Subscriptions to a drive's changes: how long, when renewed, and when one counts as dead. Pure."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LONGEST_MS: Final = 42_300 * 60_000
"""The longest that Microsoft grants for drive items (the subscription resource's page)."""
SILENCE_MS: Final = 10 * 60_000
"""A change that was found and not told of within this time shows that nobody tells us; Microsoft
says that word of one takes five minutes at most."""
RESOURCE: Final = "/drives/{}/root"
"""What is subscribed to; OneDrive for Business offers no other item."""
PATH: Final = "/notifications/graph/"
"""Where Microsoft calls; behind it comes our id of the subscription."""
LIFECYCLE: Final = "/lifecycle"
"""Behind the id, where the subscription's own fate is told."""


def secret_hash(secret: str) -> str:
    """Return what is kept of the word that Microsoft shows: SHA-256 in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()


def is_secret(shown: object, kept: str) -> bool:
    """Whether what was shown is the word of which the hash is kept; takes as long either way."""
    words = shown if isinstance(shown, str) else ""
    return hmac.compare_digest(secret_hash(words), kept)


class SubscriptionState(StrEnum):
    """What is durably true of a subscription."""

    ASKED = "asked"
    """Microsoft may know it: this is written before it is asked for."""
    LIVE = "live"
    """It was granted, and was not heard to be dead."""
    REFUSED = "refused"
    """Microsoft did not grant it; it is asked again later."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One drive's subscription, as the catalog knows it.

    Attributes:
        subscription_id: ours; it is in the address that Microsoft calls.
        secret_hash: SHA-256 (hex) of the word that Microsoft shows with every call.
        remote_id: Microsoft's; None where its answer was lost, or it refused.
        retry_at: when it is asked for again, where it was refused.
        wants_renewal: Microsoft said that it will stop unless it is renewed.
    """

    subscription_id: str
    drive_id: str
    account_id: str
    drive_remote_id: str
    state: SubscriptionState
    secret_hash: str
    remote_id: str | None
    asked_at: int
    expires_at: int | None
    retry_at: int | None
    failures: int
    wants_renewal: bool
    detail: str | None

    def is_live(self, now: int) -> bool:
        """Whether we may count on being told."""
        ends = self.expires_at
        return self.state is SubscriptionState.LIVE and ends is not None and now < ends

    def is_due(self, now: int) -> bool:
        """Whether there is something to ask Microsoft for: it, its renewal, or it again."""
        if self.state is not SubscriptionState.LIVE:
            return self.retry_at is None or now >= self.retry_at
        if self.retry_at is not None and now < self.retry_at:
            return False
        ends = self.expires_at
        return self.wants_renewal or ends is None or 2 * now >= self.asked_at + ends


def is_silent(
    *,
    asked_at: int,
    told_at: int | None,
    changed_at: int | None,
    now: int,
    silence_ms: int = SILENCE_MS,
) -> bool:
    """Whether changes were found that nobody told us of.

    Args:
        asked_at: when the subscription was granted.
        told_at: when a word about the drive came last.
        changed_at: when a look found a change last.
        silence_ms: how long word of a change may take.
    """
    if changed_at is None or now < changed_at + silence_ms:
        return False
    heard = max(asked_at, told_at or 0)
    return changed_at > heard + silence_ms


def retry_after_ms(failures: int) -> int:
    """Return how long to wait after Microsoft refused so many times in a row: a minute to hours."""
    return min(60_000 << min(max(failures - 1, 0), 10), 6 * 3_600_000)
