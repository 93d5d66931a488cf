"""The facts that invariants are about, and the readers that collect them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from drivefeed.catalog.audit import Books, Version, latest_event, moved_since, read_books
from drivefeed.catalog.recount import recount
from drivefeed.domain.errors import NotFound
from drivefeed.domain.lifecycle import State

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import ObjectStore, RoundRow

SAMPLED = 20
"""So many objects are read again, unless all are asked for."""
SAMPLED_MOST_BYTES = 16 << 20
LEFT_OVER_AFTER_MS = 25 * 3600 * 1000
"""Unfinished uploads are swept each hour once they are a day old."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found everywhere.

    Attributes:
        books: what the catalog says.
        objects: size by key, of all objects in the store.
        rounds: (live, points) by import id and round, of all in the index.
        partly_shown: rounds of which some points are live and others are not.
        read: SHA-256 by key, of the objects that were read again.
        left_over: unfinished uploads that are too old to be under way.
        usage: what does not agree in the books of usage, as sentences.
        moved: ids of imports that took a step while everything was read.
    """

    books: Books
    objects: Mapping[str, int]
    rounds: Mapping[tuple[str, int], tuple[bool, int]]
    partly_shown: frozenset[tuple[str, int]] = frozenset()
    read: Mapping[str, str] = field(default_factory=dict)
    left_over: int = 0
    usage: tuple[str, ...] = ()
    moved: frozenset[str] = frozenset()


async def collect(
    catalog: Catalog,
    store: ObjectStore,
    rounds: AsyncIterator[RoundRow],
    *,
    sample: int | None = SAMPLED,
    old_ms: int = LEFT_OVER_AFTER_MS,
) -> Facts:
    """Read catalog, store and index; nothing changes.

    Store and index come first: what is being removed is then found in the books as under way, and
    what has gone by then as moved.

    Args:
        rounds: (import id, round, live, points) for all that is in the index.
        sample: how many objects are read again; None for all of them.
        old_ms: the age at which an unfinished upload is left over.

    Raises:
        PartDown, NeedsAttention: a part does not answer.
    """
    mark = await latest_event(catalog)
    objects = {stored.key: stored.size async for stored in store.list("")}
    found, partly = await _counted(rounds)
    left_over = await store.unfinished_uploads(before=catalog.clock.now() - old_ms)
    books = await read_books(catalog)
    return Facts(
        books=books,
        objects=objects,
        rounds=found,
        partly_shown=partly,
        read=await _read_again(store, books, sample),
        left_over=left_over,
        moved=await moved_since(catalog, mark),
        usage=tuple(f"{one.org}: {words}" for one in await recount(catalog) for words in one.drift),
    )


async def _counted(
    rounds: AsyncIterator[RoundRow],
) -> tuple[dict[tuple[str, int], tuple[bool, int]], frozenset[tuple[str, int]]]:
    """Sum up each round: one that is in two collections has too many points."""
    found: dict[tuple[str, int], tuple[bool, int]] = {}
    partly: set[tuple[str, int]] = set()
    async for import_id, round_, live, count in rounds:
        key = (import_id, round_)
        shown, before = found.get(key, (live, 0))
        if shown is not live:
            partly.add(key)
        found[key] = (shown or live, before + count)
    return found, frozenset(partly)


async def _read_again(store: ObjectStore, books: Books, sample: int | None) -> dict[str, str]:
    settled = [one for one in books.versions if one.state is State.SETTLED and one.sha256]
    chosen = settled if sample is None else _spread(settled, sample)
    found: dict[str, str] = {}
    for one in chosen:
        sums = hashlib.sha256()
        try:
            async for piece in store.read(one.object_key):
                sums.update(piece)
        except NotFound:
            continue  # another invariant tells of it
        found[one.object_key] = sums.hexdigest()
    return found


def _spread(versions: list[Version], count: int) -> list[Version]:
    """Choose some, spread evenly over ids, which are as good as random."""
    small = [one for one in versions if (one.size or 0) <= SAMPLED_MOST_BYTES]
    return small[:: max(1, len(small) // count)][:count] if small else []
