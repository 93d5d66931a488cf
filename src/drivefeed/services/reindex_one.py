"""A reindex of one shelf: of the installation's documents, or of those of one organization."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from drivefeed.catalog import collections, reindexing
from drivefeed.catalog.collection_rows import ALL
from drivefeed.catalog.reindexing import Beside
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import NeedsAttention, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.services.reindex_build import Rebuild
from drivefeed.services.reindex_state import ReindexState
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from drivefeed.catalog.collection_rows import Collections, Made
    from drivefeed.indexer.collection import Collection
    from drivefeed.services.reindex_parts import ReindexParts

_MOST_ROUNDS = 20

_log = log("reindex")


class ReindexOfOne:
    """Builds a collection beside the one in use, for the installation or one organization.

    Args:
        org_id: whose documents; empty for all who have no collection of their own.

    Attributes:
        trouble: what keeps it from going on, as a sentence.
    """

    def __init__(self, parts: ReindexParts, org_id: str = ALL) -> None:
        self._parts = parts
        self._catalog = parts.catalog
        self._library = parts.library
        self._index = parts.index
        self._org_id = org_id
        self._shelf = parts.library.of(org_id) if org_id else parts.library.house
        self._held = False
        self.trouble = ""

    @property
    def wish(self) -> str:
        """What a command is given to mean this one."""
        return " --org NAME" if self._org_id else ""

    async def start(self, target: Made | None, *, leave_out: bool, anew: bool) -> None:
        """Begin to build, or go on with what is being built.

        Args:
            target: what to build with; None for the installation's collection, where an
                organization is to go back to.
            leave_out: put in use even if files could not be read again.
            anew: build even with the model that is in use, for an index that was lost or damaged.

        Raises:
            NeedsAttention: there is nothing to change, another reindex is under way, or the
                provider refuses.
            Transient, Throttled, PartDown: the provider does not answer.
        """
        known = await self._known()
        if known.building is None:
            await self._begin(known, target, leave_out=leave_out, anew=anew)
        else:
            self._require_same(known, target)
            await self._record(known.building, leave_out=leave_out)
        self._held = False

    def _require_same(self, known: Collections, target: Made | None) -> None:
        assert known.building is not None
        same = (
            known.is_returning
            if target is None
            else not known.is_returning
            and known.building.embedding == target.embedding
            and known.building.choice_id == target.choice_id
        )
        if not same:
            raise _refused(
                f"A reindex to {known.building.words} is under way. Wait for it, or stop it with "
                f"'drivefeed reindex{self.wish} --cancel'."
            )

    async def _begin(
        self, known: Collections, target: Made | None, *, leave_out: bool, anew: bool
    ) -> None:
        if target is None:
            await self._begin_return(known, leave_out=leave_out)
            return
        if self._library.returning and not self._org_id:
            raise _refused(
                "An organization is being moved into the installation's collection. Wait for it, "
                "or stop it with 'drivefeed reindex --org NAME --cancel'."
            )
        is_as_wanted = known.active is not None and (
            (known.active.embedding, known.active.choice_id) == (target.embedding, target.choice_id)
        )
        if is_as_wanted and not anew:
            remedy = (
                "Choose another one with 'drivefeed org embedding'."
                if self._org_id
                else "Name another embedding with --to; a daemon that runs knows those that its "
                "settings had when it started."
            )
            raise _refused(f"The index is made with {target.words} already. {remedy}")
        tried = await self._parts.open_collection(
            replace(target, name=collections.next_name(known, target, self._org_id))
        )
        try:
            # Before anything is recorded: does the model embed a word?
            await tried.embedder.check()
            # Of a collection of that name nobody knows, after a restore of the catalog.
            with passing(self._catalog.checkpoint, "reindex.drop"):
                await tried.index.drop()
        finally:
            await tried.aclose()
        made = (await self._record(target, leave_out=leave_out)).building
        assert made is not None
        self._shelf.building = await self._parts.open_collection(made)
        _log.info("reindex_begins", to=target.words, org_id=self._org_id or None)

    async def _begin_return(self, known: Collections, *, leave_out: bool) -> None:
        if known.active is None:
            raise _refused(
                "The organization is in the installation's collection already. Choose an embedding "
                "for it with 'drivefeed org embedding'."
            )
        house = await collections.collections_of(self._catalog, self._index)
        if house.building is not None or house.active is None:
            raise _refused(
                "The installation's collection is being reindexed. Wait for it, or stop it with "
                "'drivefeed reindex --cancel'."
            )
        await self._record(house.active, leave_out=leave_out, is_returning=True)
        self._shelf.building = self._library.house.current
        _log.info("reindex_begins", to=house.active.words, org_id=self._org_id)

    async def _record(
        self, made: Made, *, leave_out: bool, is_returning: bool = False
    ) -> Collections:
        return await collections.begin_building(
            self._catalog,
            self._index,
            made,
            leave_out=leave_out,
            org_id=self._org_id,
            is_returning=is_returning,
        )

    async def cancel(self) -> None:
        """Stop building; what was built is removed by the next :meth:`work`."""
        await collections.give_up_building(self._catalog, self._index, self._org_id)
        was_common = self._shelf.is_returning
        building, self._shelf.building = self._shelf.building, None
        if building is None:
            return
        if was_common:
            self._shelf.leaving = True
            return
        await building.unused()
        await building.aclose()

    async def state(self) -> ReindexState:
        """Return how it stands."""
        known = await self._known()
        active = known.active
        if active is None and self._org_id:
            active = (await collections.collections_of(self._catalog, self._index)).active
        words, name = (active.words, active.name) if active else ("", "")
        if known.building is None:
            return ReindexState("idle", words, trouble=self.trouble, collection=name)
        beside = self._beside(known.building)
        counted = await reindexing.progress_of(self._catalog, beside)
        failed = await reindexing.unreadable(self._catalog, beside) if counted.failed else []
        return ReindexState(
            state="held" if self._held else "building",
            active=words,
            building=known.building.words,
            done=counted.done,
            total=counted.total,
            failed=counted.failed,
            trouble=self.trouble,
            unreadable=tuple(f"{one.name}: {one.detail}" for one in failed),
            collection=name,
        )

    async def has_work(self) -> bool:
        """Whether something is to be built, or what was is to be removed."""
        known = await self._known()
        return bool(known.building or known.old or known.leaving)

    async def work(self) -> None:
        """Build to the end and swap, or until something stands in the way.

        Raises:
            Transient, Throttled, PartDown, NeedsAttention: as their docstrings say.
        """
        await self._remove_what_is_over()
        rounds = 0
        while (building := self._shelf.building) is not None:
            beside = Beside(self._index, building.name, self._org_id)
            rebuild = Rebuild(self._parts, self._shelf, beside, building)
            former = None if self._shelf.is_lodger else self._shelf.current
            async with building.kept_open():
                if await rebuild.build_missing():
                    continue
                if await self._is_held(beside):
                    return
                swapped = await rebuild.swap()
            rounds += 1
            if swapped:
                await self._drop(former)
            elif rounds == _MOST_ROUNDS:
                raise Transient(
                    "Files change faster than they can be built in the new collection, or its "
                    "points do not stay as they were written."
                )

    async def _drop(self, former: Collection | None) -> None:
        """Remove what was in use until the swap, once nobody uses it any more."""
        await self._shelf.vacated()
        await self._parts.require_turn()
        if former is not None:
            await former.unused()
            await former.embedder.aclose()
            with passing(self._catalog.checkpoint, "reindex.drop"):
                await former.index.drop()
            await self._forget(former.name)
        await self._remove_what_is_over()

    async def _is_held(self, beside: Beside) -> bool:
        known = await self._known()
        counted = await reindexing.progress_of(self._catalog, beside)
        self._held = bool(counted.failed) and not known.leave_out
        if self._held:
            _log.warning("reindex_held", failed=counted.failed, org_id=self._org_id or None)
        return self._held

    async def _remove_what_is_over(self) -> None:
        known = await self._known()
        common = await collections.collections_of(self._catalog, self._index)
        like = known.active or common.active
        if known.old or known.leaving:
            await self._parts.require_turn()
        for name in known.old:
            if like is None or name == like.name:
                continue
            left = await self._parts.open_collection(replace(like, name=name))
            await left.embedder.aclose()
            with passing(self._catalog.checkpoint, "reindex.drop"):
                await left.index.drop()
            await self._forget(name)
        for name in known.leaving:
            house = self._library.house
            for one in (house.building, house.current):
                if one is not None and one.name == name:
                    with passing(self._catalog.checkpoint, "reindex.clear"):
                        await one.index.remove_of(org_id=self._org_id)
            await self._forget(name)
        self._shelf.leaving = False

    async def _known(self) -> Collections:
        return await collections.collections_of(self._catalog, self._index, self._org_id)

    async def _forget(self, name: str) -> None:
        await collections.forget_old(self._catalog, self._index, name, self._org_id)

    def _beside(self, building: Made) -> Beside:
        return Beside(self._index, building.name, self._org_id)


def _refused(words: str) -> NeedsAttention:
    return NeedsAttention(words, reason=Reason.MISCONFIGURED)
