"""Scenes of the vector index: another model for all of it, and a collection of one's own and back.

See :mod:`durability.scenes`.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from drivefeed.bootstrap import Surroundings, open_parts
from drivefeed.catalog import collections, index_turns
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.org_embeddings import Wish, choose, choose_none
from drivefeed.catalog.reindexing import Beside
from drivefeed.services.reindex_build import Rebuild
from durability.scenes import SPARE, settings_here

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

THREE = 3


def reindex(*, to: str | None, model: str) -> None:
    """Build another collection, of which something is lost before it is put in use."""
    asyncio.run(_reindex(to, model))


async def _reindex(to: str | None, model: str) -> None:
    from drivefeed.assembly import open_indexing, open_reindexing, reindex_parts
    from drivefeed.queue.embedded import alone_on

    settings = settings_here()
    async with AsyncExitStack() as stack:
        stack.enter_context(alone_on(settings.data_dir / "queue"))
        parts = await stack.enter_async_context(open_parts(settings, Surroundings.real()))
        indexing = await open_indexing(parts, stack)
        reindexing = open_reindexing(parts, indexing)
        await _turns(parts.catalog)
        known = await collections.collections_of(parts.catalog, "embedded")
        assert known.active is not None
        if known.active.model != model:
            await reindexing.start(to)
        building = parts.index.house.building
        if building is not None:
            beside = Beside("embedded", building.name)
            shelf = parts.index.house
            opened = reindex_parts(parts, indexing)
            await Rebuild(opened, shelf, beside, building).build_missing()
            await _damage(building.index)
        await reindexing.work()
        known = await collections.collections_of(parts.catalog, "embedded")
        assert known.active is not None
        assert (known.active.model, known.building, known.old) == (model, None, ())


async def _turns(catalog: Catalog) -> None:
    """What a process does that has the index of a server open, and then alone for a while."""
    given: dict[str, Any] = {"catalog": catalog, "index": SPARE, "owner": "clerk"}
    term = await index_turns.enter(**given, for_ms=60_000)
    assert term is not None
    assert await index_turns.stay(**given, term=term, for_ms=60_000)
    assert (await index_turns.take_turn(**given, for_ms=60_000))[0] == 0
    await index_turns.end_turn(**given)
    await index_turns.leave(**given)


async def _damage(index: Any) -> None:
    """Hide one round and lose another, past the watch over effects."""
    rounds = sorted([row async for row in index.rounds()])
    if len(rounds) < THREE:  # an earlier life has lost one already
        return
    (shown, round_, *_), (lost, other, *_) = rounds[:2]
    kind = type(index)
    await kind.set_live.__wrapped__(index, import_id=shown, round_=round_, live=False)
    await kind.remove.__wrapped__(index, import_id=lost, round_=other)


def move(*, out: bool) -> None:
    """An organization gets a collection of its own, or goes back into the common one."""
    asyncio.run(_move(out=out))


async def _move(*, out: bool) -> None:
    from drivefeed.assembly import open_indexing, open_reindexing
    from drivefeed.queue.embedded import alone_on

    settings = settings_here()
    one = settings.embeddings["second"]
    key = one.api_key.get_secret_value() if one.api_key else None
    wish = Wish(one.provider, one.model, one.base_url, {"dimension": one.dimension}, key)
    async with AsyncExitStack() as stack:
        stack.enter_context(alone_on(settings.data_dir / "queue"))
        parts = await stack.enter_async_context(open_parts(settings, Surroundings.real()))
        catalog, ring = parts.catalog, parts.signing.ring
        org_id = await ensure_org(catalog, "test")
        known = await collections.collections_of(catalog, "embedded", org_id)
        if out:
            await choose(catalog, ring, org_id, wish, actor="clerk")
        else:
            await choose_none(catalog, ring, org_id, actor="clerk")
        reindexing = open_reindexing(parts, await open_indexing(parts, stack))
        if (known.active is None) is out and known.building is None:
            await reindexing.start(org_id=org_id)
        await reindexing.work()
        known = await collections.collections_of(catalog, "embedded", org_id)
        assert (known.active is not None) is out
        assert (known.building, known.old, known.leaving) == (None, (), ())
