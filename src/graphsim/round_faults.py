"""Faults of a whole round of delta: what it shows in place of its items, decided as it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphsim.drive import Drive
    from graphsim.exchange import Exchange
    from graphsim.faults import Fault
    from graphsim.items import Item


class Arrangement:
    """Asks the faults that strike a request what a round shows.

    Args:
        exchange: The request that begins the round.
        drive: The drive it is about.
    """

    def __init__(self, exchange: Exchange, drive: Drive) -> None:
        self._exchange = exchange
        self._drive = drive

    def __call__(self, items: Sequence[Item], since: int | None) -> Sequence[Item]:
        """Return what is shown in place of ``items``, changed after ``since`` (null: a crawl)."""
        if fault := self._exchange.fault("lose_tombstones"):
            items = [one for one in items if not (one.deleted and self._draws(fault, one))]
        if self._exchange.fault("omit_root"):
            items = [one for one in items if one.parent_id is not None]
        if self._exchange.fault("omit_parents"):
            items = self._without_parents(items, since)
        if fault := self._exchange.fault("stale_first"):
            stale = [self._stale(one) for one in items if one.parent_id and self._draws(fault, one)]
            items = [*stale, *items]
        if fault := self._exchange.fault("repeat"):
            items = [*items, *[one for one in items if self._draws(fault, one)]]
        if fault := self._exchange.fault("shuffle_round"):
            draw, told = self._exchange.faults.draw, fault
            items = sorted(items, key=lambda one: draw(told, (one.id, one.etag_version)))
        if self._exchange.fault("children_first"):
            items = list(reversed(items))
        return items

    def _draws(self, fault: Fault, item: Item) -> bool:
        return fault.share >= 1 or self._exchange.faults.draw(fault, item.id) < fault.share

    def _without_parents(self, items: Sequence[Item], since: int | None) -> list[Item]:
        """Leave out the root and each folder that has something of the round below it.

        One that changed itself is told all the same: left out, its change would be lost for good.
        """
        parents = {one.parent_id for one in items if not one.deleted}
        return [
            one
            for one in items
            if one.deleted
            or (since is not None and one.seq > since and one.parent_id is not None)
            or not (one.id in parents or one.parent_id is None)
        ]

    def _stale(self, item: Item) -> Item:
        """Return an earlier state of an item: the one it had, or one that it might have had."""
        earlier = self._drive.tree.lateness.earlier(item.id)
        if earlier is not None:
            return earlier
        return msgspec.structs.replace(
            item, name=f"earlier {item.name}", deleted=False, etag_version=item.etag_version - 1
        )
