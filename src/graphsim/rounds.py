"""Delta: rounds over the change log, page by page.

A round freezes its list of item states when it begins, so that a crawl shows one moment of the
drive however it is mutated meanwhile; what happened since the beginning comes in the next round,
because the deltaLink carries the sequence number of that moment. The frozen list lives in memory.
If graphsim has lost it (a restart, too many rounds at once), the round begins again on the same
link from the present state, under the *old* number: nothing is missed, some items come twice.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from graphsim.clock import parse_iso
from graphsim.errors import GraphError, invalid_request, resync_required
from graphsim.items import Item, Profile
from graphsim.seals import BadSealError, Seals

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphsim.tree import Tree

_PURPOSE = "delta"
_OPEN_ROUNDS = 64


class Wish(msgspec.Struct, frozen=True):
    """What a request asks of delta beside its token; tokens remember it."""

    select: str | None = None
    exclude_parents: bool = False
    """Leave out the unchanged parents of changed items (but never the root)."""
    scope: str | None = None
    """Id of a folder to which the round is limited."""


class Cursor(msgspec.Struct, frozen=True):
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


class Page(msgspec.Struct, frozen=True):
    """One answer of delta: item states, and the token of the link that follows."""

    items: list[Item]
    token: str
    is_last: bool
    wish: Wish


class Rounds:
    """The delta engine of one drive.

    Args:
        tree: The drive's items with their change log.
        seals: Makes the opaque tokens.
        drive: The drive's id; tokens of other drives are refused.
        profile: Timestamps as tokens are understood by business drives only.
        epoch: Tells a number that, once raised, makes every earlier token answer 410.
        descendant_tombstones: Tells whether what was below a removed folder is reported too.
    """

    def __init__(
        self,
        tree: Tree,
        seals: Seals,
        *,
        drive: str,
        profile: Profile,
        epoch: Callable[[], int],
        descendant_tombstones: Callable[[], bool],
    ) -> None:
        self._tree = tree
        self._seals = seals
        self._drive = drive
        self._profile = profile
        self._epoch = epoch
        self._descendant_tombstones = descendant_tombstones
        self._open: OrderedDict[str, list[Item]] = OrderedDict()

    def page(self, token: str | None, wish: Wish, limit: int) -> Page:
        """Return the page a token stands for; without a token, the first page of a crawl.

        Args:
            token: From a link, ``latest``, an ISO time (business drives), or ``None``.
            wish: What this request asks for; the token's own wish fills the gaps.
            limit: The most items on the page.

        Raises:
            GraphError: 400 for a token graphsim never made, 410 for one of an earlier epoch.
        """
        start = Cursor(self._drive, self._epoch(), wish, self._tree.seq)
        if token == "latest":  # noqa: S105 - the protocol's own word
            return self._page(start, [], is_last=True)
        if not token:
            return self._begin(start, limit)
        moment = parse_iso(token) if self._profile is not Profile.PERSONAL else None
        if moment is not None:
            return self._begin(msgspec.structs.replace(start, since=self._at(moment)), limit)
        cursor = self._opened(token, wish)
        if cursor.round is None:
            following = msgspec.structs.replace(
                cursor, since=cursor.until, until=self._tree.seq, offset=0
            )
            return self._begin(following, limit)
        items = self._open.get(cursor.round)
        if items is None:
            return self._begin(msgspec.structs.replace(cursor, offset=0), limit)
        self._open.move_to_end(cursor.round)
        return self._slice(cursor, items, limit)

    def forget_open_rounds(self) -> None:
        """Drop the frozen lists, as a restart would."""
        self._open.clear()

    def _begin(self, cursor: Cursor, limit: int) -> Page:
        """Freeze the items of a round and answer its first page."""
        if cursor.since is None:
            items = list(self._tree.walk())
        else:
            items = self._changes(cursor.since, exclude_parents=cursor.wish.exclude_parents)
        if cursor.wish.scope is not None:
            items = self._within(items, cursor.wish.scope)
        if len(items) > limit:
            cursor = msgspec.structs.replace(cursor, round=secrets.token_hex(6))
            self._open[str(cursor.round)] = items
            while len(self._open) > _OPEN_ROUNDS:
                self._open.popitem(last=False)
        return self._slice(cursor, items, limit)

    def _slice(self, cursor: Cursor, items: list[Item], limit: int) -> Page:
        end = cursor.offset + limit
        part = items[cursor.offset : end]
        is_last = end >= len(items)
        return self._page(msgspec.structs.replace(cursor, offset=end), part, is_last=is_last)

    def _page(self, cursor: Cursor, items: list[Item], *, is_last: bool) -> Page:
        if is_last:
            cursor = msgspec.structs.replace(cursor, round=None, since=None, offset=0)
        token = self._seals.seal(_PURPOSE, msgspec.to_builtins(cursor))
        return Page(items, token, is_last, cursor.wish)

    def _changes(self, since: int, *, exclude_parents: bool) -> list[Item]:
        """Return what changed after ``since``: the root and parents first, tombstones last."""
        changed = [item for item in self._tree.items.values() if item.seq > since]
        wanted: dict[str, Item] = {}
        for item in changed:
            if item.deleted:
                continue
            above = self._tree.ancestors(item)
            for parent in above[:1] if exclude_parents else above:
                wanted[parent.id] = parent
            wanted[item.id] = item
        alive = sorted(wanted.values(), key=self._depth)
        dead = sorted((item for item in changed if item.deleted), key=lambda item: item.seq)
        if dead and not alive:
            alive = [self._tree.root]
        if not self._descendant_tombstones():
            dead = [item for item in dead if item.deleted_top]
        return alive + dead

    def _depth(self, item: Item) -> int:
        return len(self._tree.ancestors(item))

    def _within(self, items: list[Item], scope: str) -> list[Item]:
        return [
            item
            for item in items
            if item.id == scope or scope in {above.id for above in self._tree.ancestors(item)}
        ]

    def _at(self, moment: float) -> int:
        """Return the number of the last change at or before a time."""
        numbers = (item.seq for item in self._tree.items.values() if item.changed_at <= moment)
        return max(numbers, default=0)

    def _opened(self, token: str, wish: Wish) -> Cursor:
        try:
            cursor = msgspec.convert(self._seals.open(_PURPOSE, token), Cursor)
        except (BadSealError, msgspec.ValidationError) as error:
            raise invalid_request("The delta token is malformed.") from error
        if cursor.drive != self._drive:
            raise invalid_request("The delta token belongs to another drive.")
        if cursor.epoch != self._epoch():
            raise resync_required(None)
        remembered = cursor.wish
        merged = Wish(
            select=wish.select or remembered.select,
            exclude_parents=wish.exclude_parents or remembered.exclude_parents,
            scope=remembered.scope,
        )
        return msgspec.structs.replace(cursor, wish=merged)


def is_resync(error: GraphError) -> bool:
    """Tell whether an error is the 410 that asks for a new enumeration."""
    return error.status == 410  # noqa: PLR2004 - Gone
