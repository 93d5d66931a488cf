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
from graphsim.cursors import Cursor, Page, Wish
from graphsim.errors import GraphError, invalid_request, resync_required
from graphsim.items import Item, Profile
from graphsim.seals import BadSealError, Seals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from graphsim.quirks import Quirks
    from graphsim.tree import Tree

    Arrange = Callable[[Sequence[Item], int | None], Sequence[Item]]
    """What the faults of a round make of its items, and of the number it reports from."""

_PURPOSE = "delta"
_OPEN_ROUNDS = 64


class Rounds:
    """The delta engine of one drive.

    Args:
        tree: The drive's items with their change log.
        seals: Makes the opaque tokens.
        drive: The drive's id; tokens of other drives are refused.
        profile: Timestamps as tokens are understood by business drives only.
        epoch: Tells a number that, once raised, makes every earlier token answer 410.
        quirks: Tells how tombstones below a removed folder and late changes are reported.
    """

    def __init__(
        self,
        tree: Tree,
        seals: Seals,
        *,
        drive: str,
        profile: Profile,
        epoch: Callable[[], int],
        quirks: Callable[[], Quirks],
    ) -> None:
        self._tree = tree
        self._seals = seals
        self._drive = drive
        self._profile = profile
        self._epoch = epoch
        self._quirks = quirks
        self._open: OrderedDict[str, Sequence[Item]] = OrderedDict()

    def page(
        self, token: str | None, wish: Wish, limit: int, arrange: Arrange | None = None
    ) -> Page:
        """Return the page a token stands for; without a token, the first page of a crawl.

        Args:
            token: From a link, ``latest``, an ISO time (business drives), or ``None``.
            wish: What this request asks for; the token's own wish fills the gaps.
            limit: The most items on the page.
            arrange: Asked, when a round begins, for what it shows in place of its items.

        Raises:
            GraphError: 400 for a token graphsim never made, 410 for one of an earlier epoch.
        """
        self._tree.lateness.delay = self._quirks().delay
        start = Cursor(self._drive, self._epoch(), wish, self._tree.seq)
        if token == "latest":  # noqa: S105 - the protocol's own word
            return self._page(start, start, [], is_last=True)
        if not token:
            return self._begin(start, limit, arrange)
        moment = parse_iso(token) if self._profile is not Profile.PERSONAL else None
        if moment is not None:
            at = msgspec.structs.replace(start, since=self._at(moment))
            return self._begin(at, limit, arrange)
        return self._follow(self._opened(token, wish), limit, arrange)

    def _follow(self, cursor: Cursor, limit: int, arrange: Arrange | None) -> Page:
        """Return the page that a link of ours leads to."""
        if cursor.empties:
            following = msgspec.structs.replace(
                cursor, empties=cursor.empties - 1, number=cursor.number + 1
            )
            return self._page(cursor, following, [], is_last=following.empties == 0)
        if cursor.round is None:
            following = msgspec.structs.replace(
                cursor, since=cursor.until, until=self._tree.seq, offset=0, number=1
            )
            return self._begin(following, limit, arrange)
        items = self._open.get(cursor.round)
        if items is None:
            again = msgspec.structs.replace(cursor, offset=0)
            return self._begin(again, limit, arrange, keep_until=True)
        self._open.move_to_end(cursor.round)
        return self._slice(cursor, items, limit)

    def number(self, token: str | None) -> int:
        """Return which page of its round a token stands for: 1 for one that begins a round."""
        try:
            cursor = msgspec.convert(self._seals.open(_PURPOSE, token or ""), Cursor)
        except (BadSealError, msgspec.MsgspecError):
            return 1
        return cursor.number

    def again(self, page: Page, nonce: int) -> str:
        """Return a new token that leads to a page once more."""
        own = page.own
        if own.round is None:
            own = msgspec.structs.replace(own, round=secrets.token_hex(6), offset=0)
            self._keep(str(own.round), page.items)
        return self._sealed(msgspec.structs.replace(own, nonce=nonce))

    def late_end(self, page: Page, empties: int) -> str:
        """Return a token that ends a round only after so many empty pages."""
        cursor = self._opened(page.token, Wish())
        number = page.own.number + 1
        return self._sealed(msgspec.structs.replace(cursor, empties=empties, number=number))

    def changed_meanwhile(self, page: Page) -> list[Item]:
        """Return what changed since the round of a page began."""
        return self._tree.changed_after(page.own.until)

    def forget_open_rounds(self) -> None:
        """Drop the frozen lists, as a restart would."""
        self._open.clear()

    def _begin(
        self, cursor: Cursor, limit: int, arrange: Arrange | None, *, keep_until: bool = False
    ) -> Page:
        """Freeze the items of a round and answer its first page."""
        until, hidden = self._horizon(cursor.since or 0)
        if not keep_until:
            cursor = msgspec.structs.replace(cursor, until=until)
        items: Sequence[Item]
        if cursor.since is None:
            items = self._crawled(hidden)
        else:
            items = self._changes(cursor.since, exclude_parents=cursor.wish.exclude_parents)
        if cursor.wish.scope is not None:
            items = self._within(items, cursor.wish.scope)
        if arrange is not None:
            items = arrange(items, cursor.since)
        if len(items) > limit:
            cursor = msgspec.structs.replace(cursor, round=secrets.token_hex(6))
            self._keep(str(cursor.round), items)
        return self._slice(cursor, items, limit)

    def _keep(self, name: str, items: Sequence[Item]) -> None:
        self._open[name] = items
        while len(self._open) > _OPEN_ROUNDS:
            self._open.popitem(last=False)

    def _slice(self, cursor: Cursor, items: Sequence[Item], limit: int) -> Page:
        end = cursor.offset + limit
        part = items[cursor.offset : end]
        is_last = end >= len(items)
        following = msgspec.structs.replace(cursor, offset=end, number=cursor.number + 1)
        return self._page(cursor, following, part, is_last=is_last)

    def _page(
        self, own: Cursor, following: Cursor, items: Sequence[Item], *, is_last: bool
    ) -> Page:
        if is_last:
            following = msgspec.structs.replace(
                following, round=None, since=None, offset=0, number=1, nonce=0
            )
        return Page(items, self._sealed(following), is_last, following.wish, own)

    def _sealed(self, cursor: Cursor) -> str:
        return self._seals.seal(_PURPOSE, msgspec.to_builtins(cursor))

    def _horizon(self, since: int) -> tuple[int, list[Item]]:
        """Return up to which change a round that begins now knows, and what it does not know."""
        tree, lateness = self._tree, self._tree.lateness
        late = {item.id: item for item in tree.changed_since(self._tree.now() - lateness.delay)}
        if lateness.delay <= 0:
            late.clear()
        late |= {one: tree.items[one] for one in lateness.hidden_ids() if one in tree.items}
        hidden = [item for item in late.values() if item.seq > since and item.parent_id]
        if not hidden or self._quirks().delay_loses:
            return tree.seq, hidden
        return min(item.seq for item in hidden) - 1, hidden

    def _crawled(self, hidden: list[Item]) -> Sequence[Item]:
        """Return the live items, as they were where their latest change is hidden."""
        items = self._tree.snapshot()
        if not hidden:
            return items
        visible = {item.id: self._tree.lateness.visible(item) for item in hidden}
        shown: list[Item | None] = [visible.get(item.id, item) for item in items]
        shown += [visible[item.id] for item in hidden if item.deleted]
        return [item for item in shown if item is not None and not item.deleted]

    def _changes(self, since: int, *, exclude_parents: bool) -> list[Item]:
        """Return what changed after ``since``: the root and parents first, tombstones last."""
        visible = self._tree.lateness.visible
        states = [visible(item) for item in self._tree.changed_after(since)]
        changed = [item for item in states if item is not None and item.seq > since]
        wanted: dict[str, Item] = {}
        for item in changed:
            if item.deleted:
                continue
            above = [visible(parent) for parent in self._tree.ancestors(item)]
            known = [one for one in above if one is not None and not one.deleted]
            for parent in known[:1] if exclude_parents else known:
                wanted[parent.id] = parent
            wanted[item.id] = item
        alive = sorted(wanted.values(), key=self._depth)
        dead = sorted((item for item in changed if item.deleted), key=lambda item: item.seq)
        if dead and not alive:
            alive = [self._tree.root]
        if not self._quirks().descendant_tombstones:
            # Of what came into the folder since, nobody could tell that it went with it.
            dead = [item for item in dead if item.deleted_top or item.moved_seq > since]
        return alive + dead

    def _depth(self, item: Item) -> int:
        return len(self._tree.ancestors(item))

    def _within(self, items: Sequence[Item], scope: str) -> list[Item]:
        return [
            item
            for item in items
            if item.id == scope or scope in {above.id for above in self._tree.ancestors(item)}
        ]

    def _at(self, moment: float) -> int:
        """Return the number of the last change at or before a time."""
        later = self._tree.changed_since(moment)
        return min((item.seq for item in later), default=self._tree.seq + 1) - 1

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
