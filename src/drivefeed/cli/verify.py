"""``verify``: the sync certificate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from drivefeed.catalog.progress import Standing
from drivefeed.cli.context import (
    EXIT_NOT_CLEAN,
    console,
    daemon_client,
    existing_parts,
    print_json,
    run,
)
from drivefeed.cli.look import certificate_lines, progress_dict, reason_lines
from drivefeed.services.certificate import Certificate, certify

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx


def verify(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Compare source, catalog, store and index; exit code 1 if they do not agree."""
    certificate = run(_verify())
    if as_json:
        print_json(
            certificate.as_dict()
            | {"connections": [progress_dict(one) for one in certificate.connections]}
        )
    else:
        _show(certificate)
    if not certificate.holds:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _verify() -> Certificate:
    async with existing_parts() as parts, daemon_client(parts.settings) as client:
        rounds = parts.index.rounds() if client is None else _rounds(client)
        return await certify(parts.catalog, parts.source, parts.store, rounds)


async def _rounds(client: httpx.AsyncClient) -> AsyncIterator[tuple[str, int, bool, int]]:
    async with client.stream("GET", "/v1/index/rounds") as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            import_id, round_, live, points = json.loads(line)
            yield import_id, round_, live, points


def _show(certificate: Certificate) -> None:
    for one in certificate.connections:
        parts = " + ".join(
            f"{one.counts[standing]} {standing.value.replace('_', ' ')}" for standing in Standing
        )
        console.print(f"[bold]{escape(one.connection.name)}[/]: {one.found} found = {parts}")
        for line in reason_lines(one):
            console.print(line)
    for line in certificate_lines(certificate):
        console.print(line)
