"""The sync certificate: source, catalog, object store and index compared, and said to agree or not.

It changes nothing. What is still under way is no drift; everything else that differs is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drivefeed.catalog.audit import covered_items
from drivefeed.catalog.listing import paths_of
from drivefeed.catalog.progress import Progress, progress_of
from drivefeed.catalog.sources import fetch_drive
from drivefeed.domain.explanations import explain
from drivefeed.domain.identity import Fingerprint, changed
from drivefeed.domain.remote import ItemKind, RemoteItem
from drivefeed.services.invariants import INVARIANTS, collect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection
    from drivefeed.ports import ObjectStore, Source

_MOST_EXAMPLES = 20
_FOLDERS = frozenset({ItemKind.ROOT, ItemKind.FOLDER})


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
        drift: by kind: ``missing_in_catalog``, ``extra_in_catalog``, ``changed_at_source``, or
            the name of one of :data:`drivefeed.services.invariants.INVARIANTS`.
        remarks: sentences that explain differences which are meant to be there.
    """

    connections: list[Progress]
    drift: dict[str, Drift] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
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
            "remarks": self.remarks,
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
    certificate.remarks += [words for one in progress if (words := _remark(one.connection))]
    await _compare_source(catalog, source, [one.connection for one in progress], certificate)
    facts = await collect(catalog, store, rounds)
    certificate.objects = len(facts.objects)
    certificate.points = sum(count for _, count in facts.rounds.values())
    certificate.live_documents = sum(one.live for one in facts.books.versions)
    for invariant in INVARIANTS:
        for example in invariant.check(facts):
            certificate.note(invariant.name, example)
    return certificate


def _remark(connection: Connection) -> str:
    if connection.attention is not None:
        told = explain(connection.attention)
        return f"'{connection.name}' waits for a person: {told.meaning} {told.remedy}"
    if connection.paused:
        return (
            f"'{connection.name}' is paused: what changed at the source since then differs until "
            "it is resumed."
        )
    return ""


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
        path = _path_of(there[item_id], each.root_item_id, listed)
        certificate.note("missing_in_catalog", path)
    extra = [item_id for item_id in covered if item_id not in there]
    paths = await paths_of(catalog, each.connection_id, extra[:_MOST_EXAMPLES])
    for item_id in extra:
        certificate.note("extra_in_catalog", paths.get(item_id, item_id))
    for item_id, item in there.items():
        known = covered.get(item_id)
        if known is not None and changed(
            Fingerprint(known.quick_xor, known.etag), Fingerprint.of(item)
        ):
            path = _path_of(item, each.root_item_id, listed)
            certificate.note("changed_at_source", path)


def _is_below(item: RemoteItem, root_id: str, listed: dict[str, RemoteItem]) -> bool:
    return any(parent == root_id for parent, _ in _folders_of(item, listed))


def _path_of(item: RemoteItem, root_id: str, listed: dict[str, RemoteItem]) -> str:
    names = [item.name or item.item_id]
    for parent, folder in _folders_of(item, listed):
        if parent == root_id:
            break
        names.append((folder.name if folder is not None else None) or parent)
    return "/".join(reversed(names))


def _folders_of(
    item: RemoteItem, listed: dict[str, RemoteItem]
) -> Iterator[tuple[str, RemoteItem | None]]:
    """Yield the ids of the folders around an item, and what was listed of each, nearest first."""
    passed: set[str] = set()
    parent = item.parent_id
    while parent is not None and parent not in passed:
        passed.add(parent)
        folder = listed.get(parent)
        yield parent, folder
        parent = folder.parent_id if folder is not None else None
