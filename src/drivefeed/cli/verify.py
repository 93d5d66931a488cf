"""``verify``: the sync certificate, and the repair of what it found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from drivefeed.cli.connection_work import one_connection
from drivefeed.cli.context import EXIT_NOT_CLEAN, answer_of, daemon_client, existing_parts, run
from drivefeed.cli.output import escape, print_json, say
from drivefeed.cli.status import progress_dict, say_reasons, sum_of
from drivefeed.cli.words import count_of
from drivefeed.domain.budget import Lane
from drivefeed.domain.errors import Part, PartDown
from drivefeed.services.certificate import MOST_EXAMPLES, Certificate, certify
from drivefeed.services.invariants import INVARIANTS
from drivefeed.services.repair import Mended, Repair

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import httpx

    from drivefeed.bootstrap import Parts

_BROKEN = {one.name: one for one in INVARIANTS}
_AT_ONCE = 1_000


def show_certificate(
    which: str | None = None, *, repair: bool = False, foreign: bool = False, as_json: bool
) -> None:
    """Compare all parts and show what was found.

    Exit code 1 if they do not agree; with ``repair``, if something could not be mended.
    """
    certificate, mended = run(_verify(which, repair=repair, foreign=foreign))
    if as_json:
        print_json(
            certificate.as_dict()
            | {"connections": [progress_dict(one) for one in certificate.connections]}
            | ({"repair": mended.as_dict()} if mended else {})
        )
    else:
        for one in certificate.connections:
            say(f"[bold]{escape(one.connection.name)}[/]: {sum_of(one)}")
        say_reasons(certificate.connections)
        say_certificate(certificate)
        if mended is not None:
            _say_mended(mended)
    if not (certificate.holds if mended is None else mended.is_whole):
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _verify(
    which: str | None, *, repair: bool, foreign: bool
) -> tuple[Certificate, Mended | None]:
    async with existing_parts() as parts, daemon_client(parts.settings) as client:
        index = _Here(parts) if client is None else _Behind(client)
        connection_id = None
        if which is not None:
            connection_id = (await one_connection(parts.catalog, which)).connection_id
        source = parts.source.at(Lane.VERIFY)
        try:
            certificate = await certify(
                parts.catalog,
                source,
                parts.store,
                index.rounds(),
                points_of=index.points_of,
                connection_id=connection_id,
            )
        except PartDown as error:
            if error.part is not Part.SOURCE or client is not None:
                raise
            raise PartDown(
                f"{error} If this is the data of a demo: its drive answers only while the demo "
                "runs.",
                part=Part.SOURCE,
            ) from error
        if not repair:
            return certificate, None
        work = Repair(parts.catalog, source, parts.store, index, removes_foreign=foreign)
        return certificate, await work.mend(certificate)


class _Here:
    """The index, opened by this command."""

    def __init__(self, parts: Parts) -> None:
        self._index = parts.index
        self.rounds = parts.index.rounds
        self.points_of = parts.index.points_of
        self.remove_points = parts.index.remove_points


class _Behind:
    """The index that a daemon has, asked through its door."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def rounds(self) -> AsyncIterator[tuple[str, int, bool, int]]:
        async with self._client.stream("GET", "/v1/index/rounds") as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                import_id, round_, live, points = json.loads(line)
                yield import_id, round_, live, points

    async def points_of(self, *, import_id: str, round_: int) -> list[str]:
        asked = {"import_id": import_id, "number": str(round_)}
        found: list[str] = answer_of(await self._client.get("/v1/index/points", params=asked))
        return found

    async def remove_points(self, ids: Sequence[str]) -> int:
        removed = 0
        for start in range(0, len(ids), _AT_ONCE):
            batch = list(ids[start : start + _AT_ONCE])
            answer = await self._client.request("DELETE", "/v1/index/points", json=batch)
            removed += answer_of(answer)
        return removed


def say_certificate(certificate: Certificate) -> None:
    """Say what was compared and what differs."""
    say(
        f"{count_of(certificate.live_documents, 'document')} live, "
        f"{count_of(certificate.points, 'point')} in the index, "
        f"{count_of(certificate.objects, 'object')} in the store."
    )
    for words in certificate.remarks:
        say(f"[yellow]{escape(words)}[/]")
    for kind, drift in certificate.drift.items():
        say(f"[red]✗ {drift.count} {kind.replace('_', ' ')}[/]")
        for example in drift.examples:
            say(escape(example), indent=4)
        if drift.count > len(drift.examples):
            say(f"[dim]and {drift.count - len(drift.examples)} more[/]", indent=4)
        if kind in _BROKEN:
            say(f"{_BROKEN[kind].sentence} {_BROKEN[kind].remedy}", indent=4)
    if certificate.holds:
        say("[green]✓ Source, catalog, store and index agree; extra = 0.[/]")


def _say_mended(mended: Mended) -> None:
    for kind, lines in mended.done.items():
        say(f"[green]✓ {len(lines)} {kind.replace('_', ' ')} mended, or on its way[/]")
    for kind, lines in mended.left.items():
        say(f"[red]✗ {len(lines)} {kind.replace('_', ' ')} left[/]")
        for line in lines[:MOST_EXAMPLES]:
            say(escape(line), indent=4)
    if mended.done:
        say("[dim]What takes time is done by a running drivefeed; then verify once more.[/]")
    elif mended.is_whole:
        say("There was nothing to repair.")
