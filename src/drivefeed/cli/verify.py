"""``verify``: the sync certificate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from drivefeed.cli.context import EXIT_NOT_CLEAN, daemon_client, existing_parts, run
from drivefeed.cli.output import escape, print_json, say
from drivefeed.cli.status import progress_dict, say_reasons, sum_of
from drivefeed.cli.words import count_of
from drivefeed.domain.errors import Part, PartDown
from drivefeed.services.certificate import Certificate, certify
from drivefeed.services.invariants import INVARIANTS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

_BROKEN = {one.name: one for one in INVARIANTS}


def show_certificate(*, as_json: bool) -> None:
    """Compare all parts and show what was found; exit code 1 if they do not agree."""
    certificate = run(_verify())
    if as_json:
        print_json(
            certificate.as_dict()
            | {"connections": [progress_dict(one) for one in certificate.connections]}
        )
    else:
        for one in certificate.connections:
            say(f"[bold]{escape(one.connection.name)}[/]: {sum_of(one)}")
        say_reasons(certificate.connections)
        say_certificate(certificate)
    if not certificate.holds:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _verify() -> Certificate:
    async with existing_parts() as parts, daemon_client(parts.settings) as client:
        rounds = parts.index.rounds() if client is None else _rounds(client)
        try:
            return await certify(parts.catalog, parts.source, parts.store, rounds)
        except PartDown as error:
            if error.part is not Part.SOURCE or client is not None:
                raise
            raise PartDown(
                f"{error} If this is the data of a demo: its drive answers only while the demo "
                "runs.",
                part=Part.SOURCE,
            ) from error


async def _rounds(client: httpx.AsyncClient) -> AsyncIterator[tuple[str, int, bool, int]]:
    async with client.stream("GET", "/v1/index/rounds") as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            import_id, round_, live, points = json.loads(line)
            yield import_id, round_, live, points


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
