"""Commands that look: status, imports, why, search."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from drivefeed.catalog.listing import list_files
from drivefeed.catalog.passport import Passport, passports
from drivefeed.catalog.progress import Progress, Standing, progress_of
from drivefeed.cli.context import (
    EXIT_NOT_CLEAN,
    answer_of,
    console,
    daemon_client,
    existing_parts,
    existing_settings,
    print_json,
    run,
)
from drivefeed.domain.reasons import Reason, explain
from drivefeed.services.find import find

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drivefeed.catalog.listing import ListedFile
    from drivefeed.services.certificate import Certificate

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

COLOURS = {
    Standing.SEARCHABLE: "green",
    Standing.IN_PROGRESS: "cyan",
    Standing.STALE: "yellow",
    Standing.HELD: "yellow",
    Standing.FAILED: "red",
    Standing.SKIPPED: "bright_black",
}


def meaning_of(code: str) -> str:
    """Return what a reason code means, or the code itself where it is a stage."""
    try:
        return explain(Reason(code)).meaning
    except ValueError:
        return f"It is {code}."


def remedy_of(code: str) -> str:
    """Return what to do about a reason; empty where it is a stage."""
    try:
        return explain(Reason(code)).remedy
    except ValueError:
        return ""


def status(*, as_json: Json = False) -> None:
    """Show where the files of each connection stand."""
    found = run(_progress())
    if as_json:
        print_json([progress_dict(one) for one in found])
        return
    if not found:
        console.print("No folder is connected yet.")
        return
    console.print(progress_table(found))
    for one in found:
        for line in reason_lines(one):
            console.print(line)


async def _progress() -> list[Progress]:
    async with existing_parts() as parts:
        return await progress_of(parts.catalog)


def progress_dict(one: Progress) -> dict[str, Any]:
    """Return a connection's progress as JSON values."""
    return {
        "connection_id": one.connection.connection_id,
        "name": one.connection.name,
        "drive": one.drive_name,
        "paused": one.connection.paused,
        "attention": one.connection.attention or one.drive_attention,
        "hold": one.drive_hold,
        "detail": one.detail,
        "listed": one.listed,
        "at_rest": one.at_rest,
        "found": one.found,
        "percent": one.percent,
        "pages": one.pages,
        **{standing.value: count for standing, count in one.counts.items()},
        "reasons": [
            {"standing": standing.value, "reason": why, "files": count}
            for (standing, why), count in sorted(one.reasons.items())
        ],
    }


def progress_table(found: list[Progress]) -> Table:
    """Draw the standing of all connections."""
    table = Table(title=None, header_style="bold", expand=False)
    table.add_column("connection")
    for name in ("found", *(standing.value.replace("_", " ") for standing in Standing), "done"):
        table.add_column(name, justify="right")
    for one in found:
        paused = " [yellow](paused)[/]" if one.connection.paused else ""
        table.add_row(
            escape(one.connection.name) + paused,
            str(one.found) if one.listed else f"{one.found}…",
            *(
                f"[{COLOURS[standing]}]{one.counts[standing]}[/]" if one.counts[standing] else "0"
                for standing in Standing
            ),
            f"{one.percent} %",
        )
    return table


def reason_lines(one: Progress) -> list[str]:
    """Say in words why files are skipped, held or failed, and what to do."""
    lines = []
    attention = one.connection.attention or one.drive_attention or one.drive_hold
    if attention:
        lines.append(
            f"[red]![/] {escape(one.connection.name)}: {meaning_of(attention)} "
            f"{escape(one.detail or '')} {remedy_of(attention)}"
        )
    for (standing, why), count in sorted(one.reasons.items()):
        if standing in {Standing.FAILED, Standing.HELD, Standing.SKIPPED}:
            lines.append(
                f"  [{COLOURS[standing]}]{count} {standing.value}[/] {why}: "
                f"{meaning_of(why)} [dim]{remedy_of(why)}[/]"
            )
    return lines


def certificate_lines(certificate: Certificate) -> Iterator[str]:
    """Say what was compared and what differs."""
    yield (
        f"{certificate.live_documents} documents are live, "
        f"{certificate.points} points in the index, {certificate.objects} objects in the store."
    )
    for kind, drift in certificate.drift.items():
        yield f"[red]{drift.count} {kind.replace('_', ' ')}[/]"
        for example in drift.examples:
            yield f"  {escape(example)}"
    if certificate.holds:
        yield "[green]Source, catalog, store and index agree; extra = 0.[/]"


def imports(
    state: Annotated[str | None, typer.Option(help="Only this state or standing.")] = None,
    reason: Annotated[str | None, typer.Option(help="Only this reason code.")] = None,
    limit: Annotated[int, typer.Option(min=1)] = 10_000,
    *,
    as_json: Json = False,
) -> None:
    """List files with where they stand and why."""
    standing = state if state in set(Standing) else None
    found = run(
        _imports(standing=standing, state=None if standing else state, reason=reason, limit=limit)
    )
    if as_json:
        print_json([asdict(one) for one in found])
        return
    table = Table(header_style="bold")
    for name in ("file", "standing", "why", "pages", "chunks", "bytes"):
        table.add_column(name, justify="right" if name in {"pages", "chunks", "bytes"} else "left")
    for one in found:
        colour = COLOURS[Standing(one.standing)]
        why = one.why if one.standing != Standing.SEARCHABLE else ""
        table.add_row(
            escape(one.path),
            f"[{colour}]{one.standing}[/]",
            why,
            *(str(n) if n is not None else "" for n in (one.pages, one.chunks, one.size)),
        )
    console.print(table)


async def _imports(**where: Any) -> list[ListedFile]:
    async with existing_parts() as parts:
        return await list_files(parts.catalog, **where)


def why(path: str, *, as_json: Json = False) -> None:
    """Tell the whole story of a file: each version, each step, each reason."""
    found = run(_why(path))
    if as_json:
        print_json([asdict(one) for one in found])
    elif not found:
        console.print(f"No file called '{escape(path)}' was ever listed.")
    else:
        for one in found:
            _tell(one)
    if not found:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _why(path: str) -> list[Passport]:
    async with existing_parts() as parts:
        return await passports(parts.catalog, path)


def _when(at: int | None) -> str:
    if at is None:
        return ""
    return datetime.fromtimestamp(at / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _tell(one: Passport) -> None:
    gone = " [red](deleted at the source)[/]" if one.item.deleted else ""
    console.print(f"[bold]{escape(one.path)}[/]{gone}")
    for decision in one.coverage:
        console.print(f"  connection '{escape(str(decision['connection']))}': {_said(decision)}")
    live = (one.document or {}).get("live_import_id")
    for number, version in enumerate(one.versions, start=1):
        mark = "[green]searchable[/]" if version["id"] == live else version["state"]
        console.print(
            f"  version {number} [dim]{version['version_key']}[/] round {version['round']}: {mark}"
        )
        for line in _version_lines(version):
            console.print(f"    {line}")


def _said(decision: dict[str, Any]) -> str:
    code = str(decision["reason"])
    words = "admitted"
    if not decision["admitted"]:
        words = f"skipped: {meaning_of(code)} {remedy_of(code)}"
    leaving = decision["leaving"]
    return f"{words}; is to leave ({leaving})" if leaving else words


def _version_lines(version: dict[str, Any]) -> Iterator[str]:
    for code in dict.fromkeys((version["reason"], version["attention"], version["hold"])):
        if code:
            yield f"{meaning_of(code)} [dim]{remedy_of(code)}[/]"
    if version["detail"]:
        yield f"[dim]{escape(version['detail'])}[/]"
    if version["sha256"]:
        yield (
            f"object {version['object_key']} ({version['size']} bytes, "
            f"sha256 {version['sha256'][:16]}…, {version['integrity']})"
        )
    if version["charged"]:
        paid = version["charged"]
        yield f"charged {paid['pages']} pages at {_when(paid['at'])}"
    for event in version["events"]:
        reason = f" ({event['reason']})" if event["reason"] else ""
        yield (
            f"[dim]{_when(event['at'])}[/] round {event['round']} {event['event']}{reason} "
            f"[dim]{escape(event['detail'])}[/]"
        )
    if version["due"]:
        yield f"next: {version['due']['stage']} at {_when(version['due']['due_at'])}"


def search(
    query: str,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 10,
    org: Annotated[str | None, typer.Option(help="Whose documents.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Find documents by words or by meaning."""
    found = run(_search(query, limit, org))
    if as_json:
        print_json(found)
    else:
        for number, hit in enumerate(found, start=1):
            console.print(
                f"[bold]{number}. {escape(hit['path'])}[/] [dim]page {hit['page']}, "
                f"score {hit['score']:.3f}[/]"
            )
            console.print(f"   {escape(hit['snippet'])}")
        if not found:
            console.print("Nothing found.")
    if not found:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _search(query: str, limit: int, org: str | None) -> list[dict[str, Any]]:
    async with daemon_client(existing_settings()) as client:
        if client is not None:
            wanted: dict[str, Any] = {"q": query, "limit": limit}
            response = await client.get("/v1/search", params=wanted | ({"org": org} if org else {}))
            answer: list[dict[str, Any]] = answer_of(response)
            return answer
    async with existing_parts() as parts:
        found = await find(parts.catalog, parts.searcher, query, org_name=org, limit=limit)
        return [hit.as_dict() for hit in found]
