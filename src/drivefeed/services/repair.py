"""Repair: what the certificate found is mended, each kind by the way that its subject has anyway.

Nothing here decides what a document should be. A file about which source and catalog disagree is
asked for by its id, and the answer goes the way of a change; a document is converged again; an
import whose bytes or points are gone begins a new round or has its index job done once more; and
what nobody knows is removed, by name, after it was asked for once more. What was charged is charged
no more: the ledger knows the version.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from drivefeed.catalog import restoring
from drivefeed.catalog.mending import (
    add_up,
    chunks_of_job,
    converge_again,
    item_of_document,
    show_again_one,
)
from drivefeed.catalog.rereading import Answer, take_answers, tree_rows
from drivefeed.catalog.sources import fetch_drive
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import NotFound
from drivefeed.domain.identity import idempotency_key, point_id
from drivefeed.services.invariants.facts import LEFT_OVER_AFTER_MS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import ObjectStore, Source
    from drivefeed.services.certificate import Certificate
    from drivefeed.services.invariants import Finding


PERSON: Final = "a person decides about it"
FOREIGN: Final = "it is not drivefeed's; --foreign removes it"
BY_HAND: Final = "it can only be mended by hand"
RECOVERING: Final = "the recovery from a restore sees to it"
ORDER: Final = (
    *("missing_in_catalog", "extra_in_catalog", "changed_at_source", "tree_differs", "misjudged"),
    *("not_live", "due_at_rest", "forgotten"),
    *("missing_in_store", "bytes_differ", "missing_in_index"),
    *("extra_in_store", "extra_in_index", "usage", "upload_left_over"),
)
"""What is to be decided comes first, what is to be removed last."""


class Index(Protocol):
    """The index, as far as a repair needs it; here, or behind the door of a daemon."""

    async def points_of(self, *, import_id: str, round_: int) -> list[str]:
        """Return the ids of a round's points."""
        ...

    async def remove_points(self, ids: Sequence[str]) -> int:
        """Remove points by their ids; return how many there were."""
        ...


@dataclass(slots=True)
class Mended:
    """What a repair did.

    Attributes:
        done: what was mended or put on its way, in words, by kind.
        left: what was not, each with the reason.
    """

    done: dict[str, list[str]] = field(default_factory=dict)
    left: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left."""
        return not self.left

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"done": self.done, "left": self.left}


class Repair:
    """Mends what a certificate found.

    Args:
        index: the embedded backend's index.
        removes_foreign: whether objects and points that drivefeed did not name go as well.
    """

    def __init__(
        self,
        catalog: Catalog,
        source: Source,
        store: ObjectStore,
        index: Index,
        *,
        removes_foreign: bool = False,
    ) -> None:
        self._catalog = catalog
        self._source = source
        self._store = store
        self._index = index
        self._removes_foreign = removes_foreign
        self._seen_to: set[str] = set()
        self._orgs: frozenset[str] = frozenset()
        self._mended = Mended()

    async def mend(self, certificate: Certificate) -> Mended:
        """Mend what can be mended; what takes time is put on its way.

        Raises:
            Transient, Throttled, PartDown, NeedsAttention: a part does not answer; what was
                mended until then is mended.
        """
        self._orgs = await restoring.known_orgs(self._catalog)
        restored = await restoring.restored(self._catalog)
        is_recovering = restored is not None and restored.done_at is None
        ways = self._ways()
        for kind in sorted(certificate.drift, key=_place):
            way = ways.get(kind)
            for one in certificate.drift[kind].findings:
                if is_recovering and kind.endswith(("_store", "_index")):
                    why = RECOVERING
                else:
                    why = BY_HAND if way is None else PERSON if one.asks else await way(one)
                if why:
                    self._mended.left.setdefault(kind, []).append(f"{one}: {why}")
                else:
                    self._mended.done.setdefault(kind, []).append(str(one))
        return self._mended

    def _ways(self) -> dict[str, Callable[[Finding], Awaitable[str]]]:
        """Return how each kind is mended: None said where it is, else why it is not."""
        reread = dict.fromkeys(ORDER[:5], self._reread)
        converged = dict.fromkeys(ORDER[5:8], self._converge)
        return {
            **reread,
            **converged,
            "missing_in_store": self._transfer_again,
            "bytes_differ": self._transfer_again,
            "missing_in_index": self._index_again,
            "extra_in_store": self._remove_object,
            "extra_in_index": self._remove_points,
            "usage": self._add_up,
            "upload_left_over": self._abort_uploads,
        }

    # --- the source ----------------------------------------------------------------------------

    async def _reread(self, one: Finding) -> str:
        """Ask for an item by id, and take its answer into the tree."""
        if one.drive_id is None or one.item_id is None:
            return BY_HAND
        if one.item_id in self._seen_to:
            return ""
        drive = await fetch_drive(self._catalog, one.drive_id)
        row = (await tree_rows(self._catalog, one.drive_id, [one.item_id])).get(one.item_id)
        try:
            remote = await self._source.item(drive.ref, one.item_id)
        except NotFound:
            remote = None
        await take_answers(self._catalog, one.drive_id, [Answer(one.item_id, row, remote)])
        self._seen_to.add(one.item_id)
        return ""

    async def _reread_document(self, one: Finding) -> str:
        assert one.document_id is not None
        place = await item_of_document(self._catalog, one.document_id)
        if place is None:
            return BY_HAND
        return await self._reread(replace(one, drive_id=place[0], item_id=place[1]))

    # --- the catalog ---------------------------------------------------------------------------

    async def _converge(self, one: Finding) -> str:
        if one.document_id is None:
            return BY_HAND
        if await converge_again(self._catalog, one.document_id, detail=str(one)):
            return ""
        return await self._reread_document(one)

    async def _add_up(self, one: Finding) -> str:
        if one.org is None or "the counter says" not in one.words:
            return BY_HAND
        await add_up(self._catalog, one.org)
        return ""

    # --- store and index -----------------------------------------------------------------------

    async def _transfer_again(self, one: Finding) -> str:
        assert one.import_id is not None
        assert one.round is not None
        if one.import_id not in self._seen_to:
            self._seen_to.add(one.import_id)
            await restoring.import_again(self._catalog, one.import_id, one.round, detail=str(one))
        return ""

    async def _index_again(self, one: Finding) -> str:
        """Take away points too many, and have those that are missing made again."""
        assert one.import_id is not None
        assert one.round is not None
        assert one.document_id is not None
        if one.import_id in self._seen_to:
            return ""  # a new round brings its points
        key = idempotency_key(one.import_id, one.round)
        wanted = await chunks_of_job(self._catalog, key)
        there = await self._index.points_of(import_id=one.import_id, round_=one.round)
        expected = {point_id(one.import_id, one.round, chunk) for chunk in range(wanted or 0)}
        if wanted is not None:
            await self._take_away([key for key in there if key not in expected])
        if wanted is None or (expected <= {*there} and one.expected != wanted):
            # Without its job, or where the number of its chunks is what is wrong.
            return await self._transfer_again(one)
        if not expected <= {*there}:
            job_id = await restoring.index_again(self._catalog, one.import_id, key)
            if job_id is None:
                return await self._transfer_again(one)
        await show_again_one(self._catalog, one.document_id)
        return ""

    async def _remove_object(self, one: Finding) -> str:
        """Remove an object that no import has; asked for once more just before."""
        assert one.key is not None
        if one.key.partition("/")[0] not in self._orgs and not self._removes_foreign:
            return FOREIGN
        found = _named(one.key)
        if found is not None and await self._is_in_use(*found):
            return ""
        with passing(self._catalog.checkpoint, "recovery.object"):
            await self._store.delete(one.key)
        return ""

    async def _remove_points(self, one: Finding) -> str:
        """Remove points of rounds that ended or nobody knows; a settled one keeps its own."""
        import_id, round_ = one.import_id or "", one.round or 0
        if not import_id and not self._removes_foreign:
            return FOREIGN
        there = await self._index.points_of(import_id=import_id, round_=round_)
        if one.document_id is not None and await self._is_in_use(import_id, round_):
            wanted = await chunks_of_job(self._catalog, idempotency_key(import_id, round_)) or 0
            expected = {point_id(import_id, round_, chunk) for chunk in range(wanted)}
            await self._take_away([key for key in there if key not in expected])
            await show_again_one(self._catalog, one.document_id)
        elif not await self._is_in_use(import_id, round_):
            await self._take_away(there)
        return ""

    async def _take_away(self, ids: Sequence[str]) -> None:
        if ids:
            with passing(self._catalog.checkpoint, "recovery.points"):
                await self._index.remove_points(ids)

    async def _is_in_use(self, import_id: str, round_: int) -> bool:
        """Whether an import is in that round now; asked just before what bears it is removed."""
        return await restoring.present_round(self._catalog, import_id) == round_

    async def _abort_uploads(self, _: Finding) -> str:
        before = self._catalog.clock.now() - LEFT_OVER_AFTER_MS
        with passing(self._catalog.checkpoint, "uploads.sweep"):
            await self._store.abort_uploads(before=before)
        return ""


def _place(kind: str) -> int:
    return ORDER.index(kind) if kind in ORDER else len(ORDER)


def _named(key: str) -> tuple[str, int] | None:
    """Return import and round that a key names; None where it names none."""
    import_id, _, round_ = key.partition("/")[2].partition("/")[2].partition("/")
    return (import_id, int(round_)) if round_.isdigit() else None
