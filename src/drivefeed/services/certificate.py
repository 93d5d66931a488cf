"""The sync certificate: source, catalog, object store and index compared, and said to agree or not.

It changes nothing. What is still under way is no drift; everything else that differs is. What it
finds is named and located, so that :mod:`drivefeed.services.repair` can mend it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from drivefeed.catalog.erasing import erased_left
from drivefeed.catalog.mending import documents_in
from drivefeed.catalog.progress import Progress, progress_of
from drivefeed.catalog.receipts import receipts
from drivefeed.domain.errors import NotFound
from drivefeed.domain.explanations import explain
from drivefeed.domain.identity import point_id
from drivefeed.domain.words import count_of
from drivefeed.services.certificate_source import compare_source
from drivefeed.services.invariants import INVARIANTS, Finding, collect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection
    from drivefeed.ports import ObjectStore, Source
    from drivefeed.services.invariants import Facts

MOST_EXAMPLES: Final = 20
_NAMED: Final = 3
MOST_FINDINGS: Final = 10_000
"""Of each kind; more are counted, and found again by the next look."""


class PointsOf(Protocol):
    """Tells the ids of a round's points."""

    async def __call__(self, *, import_id: str, round_: int) -> list[str]:
        """Return them."""
        ...


@dataclass(slots=True)
class Drift:
    """One kind of difference: how often, with what was found."""

    count: int = 0
    findings: list[Finding] = field(default_factory=list)

    def add(self, one: Finding) -> None:
        """Count one more."""
        self.count += 1
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(one)

    @property
    def examples(self) -> list[str]:
        """Some of them, in words."""
        return [str(one) for one in self.findings[:MOST_EXAMPLES]]


@dataclass(slots=True)
class Certificate:
    """What was compared and what differs.

    Attributes:
        drift: by kind: ``missing_in_catalog``, ``extra_in_catalog``, ``changed_at_source``,
            ``misjudged``, or the name of one of
            :data:`drivefeed.services.invariants.INVARIANTS`.
        remarks: sentences that explain differences which are meant to be there.
        listed: files that the source has in each connection, by its id.
    """

    connections: list[Progress]
    drift: dict[str, Drift] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    listed: dict[str, int] = field(default_factory=dict)
    objects: int = 0
    points: int = 0
    live_documents: int = 0

    def note(self, kind: str, one: Finding) -> None:
        """Record a difference."""
        self.drift.setdefault(kind, Drift()).add(one)

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
            "listed": self.listed,
            "extra": sum(one.count for kind, one in self.drift.items() if kind.startswith("extra")),
            "drift": {
                kind: {
                    "count": one.count,
                    "examples": one.examples,
                    "findings": [each.as_dict() for each in one.findings[:MOST_EXAMPLES]],
                }
                for kind, one in self.drift.items()
            },
        }


async def certify(
    catalog: Catalog,
    source: Source,
    store: ObjectStore,
    rounds: AsyncIterator[tuple[str, int, bool, int]],
    *,
    points_of: PointsOf | None = None,
    connection_id: str | None = None,
) -> Certificate:
    """Compare everything with everything.

    Args:
        rounds: (import id, round, live, points) for all that is in the index.
        points_of: tells the ids of a round's points, so that those can be named that are missing or
            too many.
        connection_id: compare one connection alone: its drive, and what it has in store and
            index. What belongs to none is left out then.

    Raises:
        Transient, Throttled, PartDown, NeedsAttention: a part does not answer.
        NotFound: there is no such connection.
    """
    progress = await progress_of(catalog, connection_id=connection_id)
    if connection_id is not None and not progress:
        raise NotFound(f"There is no connection {connection_id} in the catalog.")
    certificate = Certificate(connections=progress)
    certificate.remarks += [words for one in progress if (words := _remark(one.connection))]
    await compare_source(catalog, source, [one.connection for one in progress], certificate)
    facts = await collect(catalog, store, rounds)
    certificate.objects = len(facts.objects)
    certificate.points = sum(count for _, count in facts.rounds.values())
    certificate.live_documents = sum(one.live for one in facts.books.versions)
    await _compare_rest(catalog, facts, certificate, connection_id)
    if connection_id is None:
        await _confirm_receipts(catalog, certificate)
    if points_of is not None:
        for kind in ("missing_in_index", "extra_in_index"):
            await _name_points(certificate.drift.get(kind), points_of)
    return certificate


async def _name_points(drift: Drift | None, points_of: PointsOf) -> None:
    """Tell of some findings which points they are."""
    for number, one in enumerate(drift.findings[:MOST_EXAMPLES] if drift else ()):
        assert drift is not None
        import_id, round_ = one.import_id or "", one.round or 0
        there = {*await points_of(import_id=import_id, round_=round_)}
        ours = {point_id(import_id, round_, chunk) for chunk in range(one.expected or 0)}
        named = sorted((ours - there) | (there - ours))[:MOST_EXAMPLES]
        if named:
            drift.findings[number] = replace(
                one, points=tuple(named), words=f"{one.words}: {', '.join(named[:_NAMED])}"
            )


async def _confirm_receipts(catalog: Catalog, certificate: Certificate) -> None:
    """Say which erasures hold, and note words that were left behind."""
    left = await erased_left(catalog)
    for document_id, words in left:
        certificate.note(
            "erased_left", Finding(f"document {document_id}: {words}", document_id=document_id)
        )
    for one in await receipts(catalog):
        if one.policy == "erase" and one.ended_at is not None and not left:
            verb = "was" if one.documents == 1 else "were"
            certificate.remarks.append(
                f"Confirmed: the receipt of connection {one.connection_id}, with which "
                f"{count_of(one.documents, 'document')} {verb} erased."
            )


async def _compare_rest(
    catalog: Catalog, facts: Facts, certificate: Certificate, connection_id: str | None
) -> None:
    left_out = 0
    for invariant in INVARIANTS:
        found = invariant.check(facts)
        if connection_id is None:
            for one in found:
                certificate.note(invariant.name, one)
            continue
        mine = list(found)
        ids = {one.document_id for one in mine if one.document_id is not None}
        ours = await documents_in(catalog, connection_id, ids) if ids else set()
        for one in mine:
            if one.document_id in ours:
                certificate.note(invariant.name, one)
            else:
                left_out += 1
    if left_out:
        certificate.remarks.append(
            f"{count_of(left_out, 'difference')} outside of this connection: 'drivefeed verify' "
            "without a name tells more."
        )


def _remark(connection: Connection) -> str:
    if connection.disconnected:
        return f"'{connection.name}' was disconnected: what it brought is kept as it was then."
    if connection.attention is not None:
        told = explain(connection.attention)
        return f"'{connection.name}' waits for a person: {told.meaning} {told.remedy}"
    if connection.paused:
        return (
            f"'{connection.name}' is paused: what changed at the source since then differs until "
            "it is resumed."
        )
    return ""
