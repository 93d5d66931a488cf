"""What delta tokens say, and what one page of delta is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphsim.items import Item


class Wish(msgspec.Struct, frozen=True):
    """What a request asks of delta beside its token; tokens remember it."""

    select: str | None = None
    exclude_parents: bool = False
    """Leave out the unchanged parents of changed items (but never the root)."""
    scope: str | None = None
    """Id of a folder to which the round is limited."""


class Cursor(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a token says. ``round`` is set in the middle of a round, and null in a deltaLink."""

    drive: str
    epoch: int
    wish: Wish
    until: int
    """The sequence number from which the round after this one starts."""
    since: int | None = None
    """The sequence number after which this round reports; null for a crawl."""
    round: str | None = None
    offset: int = 0
    number: int = 1
    """Which page of its round it stands for."""
    empties: int = 0
    """How many empty pages come before the round ends."""
    nonce: int = 0
    """Makes two tokens for the same page differ."""


class Page(msgspec.Struct, frozen=True):
    """One answer of delta: item states, and the token of the link that follows."""

    items: Sequence[Item]
    token: str
    is_last: bool
    wish: Wish
    own: Cursor
    """The cursor of the page itself."""
