"""``drivefeed probe``: what accounts have, what is missing, what is more than needed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from drivefeed.cli.context import EXIT_NOT_CLEAN, existing_parts, run
from drivefeed.cli.output import escape, print_json, say
from drivefeed.cli.words import remedy_of
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.sources.graph.probe_report import ProbeReport

_MARKS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[dim]·[/]"}
_VERDICTS = {"ok": "[green]ready[/]", "warning": "[yellow]ready, with remarks[/]"}


def show_probe(account: str | None, drive: str | None, *, as_json: bool) -> None:
    """Probe accounts and show what was found; exit code 1 if one lacks something."""
    reports = run(_probed(account, drive))
    if as_json:
        print_json([asdict(one) for one in reports])
    else:
        for one in reports:
            _show(one)
    if any(one.verdict == "failed" for one in reports):
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _probed(account: str | None, drive: str | None) -> list[ProbeReport]:
    from drivefeed.catalog.sources import remote_ids_of
    from drivefeed.sources.graph.probe import probe

    async with existing_parts() as parts:
        found = {
            account_id: one
            for account_id, one in parts.accounts.items()
            if account is None or account in {account_id, one.name}
        }
        if not found:
            words = f"There is no account '{account}'." if account else "There is no account yet."
            raise NeedsAttention(words, reason=Reason.MISCONFIGURED)
        reports = []
        for account_id in found:
            client = await parts.source.client(account_id)
            connected = await remote_ids_of(parts.catalog, account_id)
            if drive is not None:
                is_known = drive in connected
                reports.append(await probe(client, **_target(drive), is_connected=is_known))
                continue
            reports += [
                await probe(client, drive_id=one, is_connected=True) for one in connected
            ] or [await probe(client)]
        return reports


def _target(drive: str) -> dict[str, str]:
    """Tell an address from a person's name and from a drive's id."""
    if ":/" in drive or drive.startswith("/"):
        return {"url": drive}
    return {"user" if "@" in drive else "drive_id": drive}


def _show(report: ProbeReport) -> None:
    verdict = _VERDICTS.get(report.verdict, "[red]something is missing[/]")
    say(f"[bold]{escape(report.account)}[/]  {verdict}")
    if report.signed_in_as:
        say(f"Signed in as {escape(report.signed_in_as)}.", indent=2)
    if report.has is not None:
        say(f"Has: {escape(', '.join(report.has) or 'no permission at all')}", indent=2)
    if report.granted is not None:
        given = "granted to the app" if report.granted else "not granted to the app"
        say(f"Selected sites: this one is {given}.", indent=2)
    for check in report.checks:
        say(f"{_MARKS[check.ok]} {escape(check.sentence)}", indent=2)
        if check.ok is False and check.reason:
            say(f"[dim]{escape(remedy_of(check.reason))}[/]", indent=4)
    for one in report.missing:
        say(f"[red]Missing:[/] {escape(one)}", indent=2)
    for name, why in report.excess.items():
        say(f"[yellow]More than needed:[/] {escape(name)} {escape(why)}.", indent=2)
    if report.nothing:
        say(escape(report.nothing), indent=2)
