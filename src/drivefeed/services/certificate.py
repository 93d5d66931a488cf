"""The sync certificate: source, catalog, object store and index compared, and said to agree or not.

It changes nothing. What is still under way is no drift; everything else that differs is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drivefeed.catalog.audit import covered_items, effects
from drivefeed.catalog.progress import Progress, progress_of
from drivefeed.catalog.sources import fetch_drive
from drivefeed.domain.identity import Fingerprint, changed
from drivefeed.domain.lifecycle import State
from drivefeed.domain.remote import ItemKind, RemoteItem

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection
    from drivefeed.ports import ObjectStore, Source

_MOST_EXAMPLES = 20
_FOLDERS = frozenset({ItemKind.ROOT, ItemKind.FOLDER})
_HAS_OBJECT = frozenset({State.STORED, State.SUBMITTED, State.SETTLED})
_IN_MOTION = frozenset({State.DISCOVERED, State.SUBMITTED, State.WITHDRAWING, State.REJECTED})


@dataclass(slots=True)
class Drift:
    """One kind of difference: how often, with some examples."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, example: str) -> None:
        """Count one more."""
        self.count += 1
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.append(example)


@dataclass(slots=True)
class Certificate:
    """What was compared and what differs.

    Attributes:
        drift: by kind: ``missing_in_catalog``, ``extra_in_catalog``, ``changed_at_source``,
            ``missing_in_store``, ``extra_in_store``, ``missing_in_index``, ``extra_in_index``.
    """

    connections: list[Progress]
    drift: dict[str, Drift] = field(default_factory=dict)
    objects: int = 0
    points: int = 0
    live_documents: int = 0

    def note(self, kind: str, example: str) -> None:
        """Record a difference."""
        self.drift.setdefault(kind, Drift()).add(example)

    @property
    def holds(self) -> bool:
        """Whether everything agrees."""
        return not self.drift

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "holds": self.holds,
            "objects": self.objects,
            "points": self.points,
            "live_documents": self.live_documents,
            "extra": sum(one.count for kind, one in self.drift.items() if kind.startswith("extra")),
            "drift": {
                kind: {"count": one.count, "examples": one.examples}
                for kind, one in self.drift.items()
            },
        }


async def certify(
    catalog: Catalog,
    source: Source,
    store: ObjectStore,
    rounds: AsyncIterator[tuple[str, int, bool, int]],
) -> Certificate:
    """Compare everything with everything.

    Args:
        rounds: (import id, round, live, points) for all that is in the index.

    Raises:
        Transient, Throttled, PartDown, NeedsAttention: a part does not answer.
    """
    progress = await progress_of(catalog)
    certificate = Certificate(connections=progress)
    await _compare_source(catalog, source, [one.connection for one in progress], certificate)
    await _compare_store_and_index(catalog, store, rounds, certificate)
    return certificate


async def _compare_source(
    catalog: Catalog, source: Source, connections: list[Connection], certificate: Certificate
) -> None:
    for drive_id in {one.drive_id for one in connections}:
        drive = await fetch_drive(catalog, drive_id)
        listed: dict[str, RemoteItem] = {}
        link: str | None = None
        while True:
            page = await source.delta(drive.ref, link)
            for item in page.items:
                if item.deleted:
                    listed.pop(item.item_id, None)
                else:
                    listed[item.item_id] = item
            if page.delta_link is not None:
                break
            link = page.next_link
        for each in connections:
            if each.drive_id == drive_id:
                await _compare_connection(catalog, each, listed, certificate)


async def _compare_connection(
    catalog: Catalog,
    each: Connection,
    listed: dict[str, RemoteItem],
    certificate: Certificate,
) -> None:
    covered = await covered_items(catalog, each.connection_id, each.drive_id)
    there = {
        item.item_id: item
        for item in listed.values()
        if item.kind not in _FOLDERS and _is_below(item, each.root_item_id, listed)
    }
    for item_id in there.keys() - covered.keys():
        certificate.note("missing_in_catalog", there[item_id].name or item_id)
    for item_id, known in covered.items():
        item = there.get(item_id)
        if item is None:
            certificate.note("extra_in_catalog", known.name)
        elif changed(Fingerprint(known.quick_xor, known.etag), Fingerprint.of(item)):
            certificate.note("changed_at_source", known.name)


def _is_below(item: RemoteItem, root_id: str, listed: dict[str, RemoteItem]) -> bool:
    passed: set[str] = set()
    parent = item.parent_id
    while parent is not None and parent not in passed:
        if parent == root_id:
            return True
        passed.add(parent)
        folder = listed.get(parent)
        parent = folder.parent_id if folder is not None else None
    return False


async def _compare_store_and_index(
    catalog: Catalog,
    store: ObjectStore,
    rounds: AsyncIterator[tuple[str, int, bool, int]],
    certificate: Certificate,
) -> None:
    objects = {stored.key: stored.size async for stored in store.list("")}
    points = {(import_id, round_): (live, count) async for import_id, round_, live, count in rounds}
    certificate.objects = len(objects)
    certificate.points = sum(count for _, count in points.values())
    async for effect in effects(catalog):
        size = objects.pop(effect.object_key, None)
        if effect.state in _HAS_OBJECT and size != effect.size:
            found = "no object" if size is None else f"an object of {size} bytes"
            certificate.note(
                "missing_in_store",
                f"{effect.object_key}: {found}, {effect.size} bytes are expected",
            )
        name = f"import {effect.import_id} round {effect.round}"
        live, count = points.pop((effect.import_id, effect.round), (False, 0))
        if effect.live:
            certificate.live_documents += 1
            if not live or count != effect.chunks:
                certificate.note(
                    "missing_in_index",
                    f"{name}: {count} points{'' if live else ', not live'}, "
                    f"{effect.chunks} are expected",
                )
        elif count and effect.state not in _IN_MOTION and effect.state is not State.SETTLED:
            certificate.note("extra_in_index", f"{name}: {count} points")
    for key in objects:
        certificate.note("extra_in_store", key)
    for (import_id, round_), (_, count) in points.items():
        certificate.note("extra_in_index", f"import {import_id} round {round_}: {count} points")
