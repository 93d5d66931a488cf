"""Which checkpoints belong to which hour of a day, and what goes wrong there."""

from __future__ import annotations

GOES_WRONG = {
    "page.fetch.after": "transient",
    "page.commit.before": "person",
    "scan.commit.before": "transient",
    "transfer.put.after": "transient",
}
"""What goes wrong once, by checkpoint; a life that is to die there dies first."""

IN_HOUR: dict[str, tuple[str, ...]] = {
    "morning": (
        *("admit.", "connect", "discover.attempt", "drive.", "enumeration", "relay.emptied"),
        *("relay.sentinel", "scan", "settling", "advance.refused", "account."),
        *("org.", "collection.", "attempt", "bury"),
    ),
    "edits": ("placed", "publish.place", "transfer.discard"),
    "returns": ("claim", "relay.taken"),
    "change_of_mind": ("advance.cancelled", "poll.cancel", "index.forget"),
    "same_bytes": ("advance.same_bytes",),
    "question": ("attention", "clear", "drives.", "notice."),
    "many_removals": ("removals.",),
    "slow_hours": ("park", "hand_back", "connection.pause"),
    "leftovers": ("release", "reap", "unattended"),
}
"""What is passed in some hours alone, by the first of them, or does not happen often."""
ANY_HOUR = 5
"""So many hours share what is passed in all of them."""
