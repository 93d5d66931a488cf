"""``usage``: pages used, held and free; the statement; limits and corrections as they are typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from drivefeed.cli.once import Commands

if TYPE_CHECKING:
    from drivefeed.catalog.recount import Recount
    from drivefeed.catalog.usage import Usage

usage_app = Commands(
    help="Pages: what is used, held and free; statement, limit, corrections.",
    invoke_without_command=True,
)

MOST_PAGES = 1_000_000_000
"""More than that is a slip of the hand; sums of such numbers still fit into every database."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]
Org = Annotated[str | None, typer.Option(help="Whose; may be left out where there is only one.")]


@usage_app.callback()
def usage(
    context: typer.Context,
    org: Annotated[str | None, typer.Option(help="Only this organization.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Show how the pages of each organization stand."""
    if context.invoked_subcommand is not None:
        return
    from drivefeed.cli.context import run
    from drivefeed.cli.output import escape, print_json, say
    from drivefeed.services.usage_words import usage_dict, usage_sentence

    found = run(_usage(org))
    if as_json:
        print_json([usage_dict(one) for one in found])
    elif not found:
        say("There is no organization yet.")
    for one in [] if as_json else found:
        say(f"[bold]{escape(one.org)}[/]: {usage_sentence(one)}")


async def _usage(org: str | None) -> list[Usage]:
    from drivefeed.catalog.listing import org_named
    from drivefeed.catalog.usage import usage_of
    from drivefeed.cli.context import existing_catalog

    async with existing_catalog() as catalog:
        return await usage_of(catalog, await org_named(catalog, org) if org else None)


@usage_app.command("statement")
def statement(
    org: Annotated[str | None, typer.Option(help="Only this organization.")] = None,
    connection: Annotated[
        str | None, typer.Option(help="Only this connection, by name or id.")
    ] = None,
    document: Annotated[str | None, typer.Option(help="Only this document, by id.")] = None,
    begin: Annotated[
        str | None, typer.Option("--from", help="Only from this date or instant on, in UTC.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Only before this one, such as 2027-01-31T12:00Z.")
    ] = None,
    *,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    as_json: Json = False,
) -> None:
    """List the entries of the ledger: charges, copies of a backend's books, corrections."""
    from drivefeed.cli.context import run
    from drivefeed.cli.usage_statement import Choice, print_statement, statement_of

    choice = Choice(org, connection, document, _instant(begin), _instant(end))
    if choice.begin is not None and choice.end is not None and choice.end <= choice.begin:
        raise typer.BadParameter("--to is not later than --from: nothing lies between them.")
    print_statement(run(statement_of(choice)), as_csv=as_csv, as_json=as_json)


@usage_app.command("limit")
def limit(
    pages: Annotated[
        int | None, typer.Argument(min=0, max=MOST_PAGES, help="Pages; see also --none.")
    ] = None,
    per: Annotated[
        str, typer.Option(help="total, month or day: when used pages are counted anew.")
    ] = "total",
    zone: Annotated[
        str, typer.Option(help="The time zone in which a month or a day begins.")
    ] = "UTC",
    org: Org = None,
    *,
    none: Annotated[bool, typer.Option("--none", help="No limit.")] = False,
    as_json: Json = False,
) -> None:
    """Set how many pages an organization may use; what waits for pages goes on by itself."""
    from drivefeed.catalog.quota_limits import Limit
    from drivefeed.cli.context import run
    from drivefeed.cli.output import escape, print_json, say
    from drivefeed.domain.periods import Period
    from drivefeed.services.usage_words import usage_dict, usage_sentence

    if (pages is None) is not none:
        raise typer.BadParameter("Say either a number of pages, or --none.")
    if none and (per, zone) != ("total", "UTC"):
        raise typer.BadParameter("Without a limit there is no period: leave --per and --zone out.")
    if per not in set(Period):
        raise typer.BadParameter(f"There is no '{per}'; choose from {', '.join(Period)}.")
    wanted = Limit() if none else Limit(pages, Period(per), zone)
    one = run(_limit(org, wanted))
    if as_json:
        print_json(usage_dict(one))
    else:
        say(f"[bold]{escape(one.org)}[/]: {usage_sentence(one)}")


async def _limit(org: str | None, wanted: object) -> Usage:
    from drivefeed.catalog.listing import org_named
    from drivefeed.catalog.quota_limits import Limit, set_limit
    from drivefeed.catalog.usage import usage_of
    from drivefeed.cli.context import existing_catalog, os_user

    assert isinstance(wanted, Limit)
    async with existing_catalog() as catalog:
        org_id = await org_named(catalog, org)
        await set_limit(catalog, org_id, wanted, actor=os_user())
        (one,) = await usage_of(catalog, org_id)
    return one


@usage_app.command("correct")
def correct(
    pages: Annotated[
        int,
        typer.Option(min=-MOST_PAGES, max=MOST_PAGES, help="How many more; fewer with a minus."),
    ],
    reason: Annotated[str, typer.Option(help="For whoever reads the statement.")],
    entry: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_PAGES, help="The number of the charge that was wrong."),
    ] = None,
    org: Org = None,
    *,
    as_json: Json = False,
) -> None:
    """Add a correction to the ledger; nothing that stands in it is ever changed."""
    from drivefeed.cli.context import run
    from drivefeed.cli.output import escape, print_json, say
    from drivefeed.services.usage_words import usage_dict, usage_sentence

    number, one = run(_correct(org, pages, reason, entry))
    if as_json:
        print_json({"number": number, "usage": usage_dict(one)})
    else:
        say(f"Entry {number} was added. [bold]{escape(one.org)}[/]: {usage_sentence(one)}")


async def _correct(
    org: str | None, pages: int, reason: str, entry: int | None
) -> tuple[int, Usage]:
    from drivefeed.catalog.ledger import correct as add_correction
    from drivefeed.catalog.listing import org_named
    from drivefeed.catalog.usage import usage_of
    from drivefeed.cli.context import existing_catalog, os_user

    async with existing_catalog() as catalog:
        org_id = await org_named(catalog, org)
        number = await add_correction(
            catalog, org_id, pages, reason=reason, actor=os_user(), corrects=entry
        )
        (one,) = await usage_of(catalog, org_id)
    return number, one


@usage_app.command("recount")
def recount(
    org: Annotated[str | None, typer.Option(help="Only this organization.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Add up the books anew and compare; exit code 1 if something does not agree."""
    from dataclasses import asdict

    from drivefeed.cli.context import EXIT_NOT_CLEAN, run
    from drivefeed.cli.output import escape, print_json, say
    from drivefeed.cli.words import count_of

    found = run(_recount(org))
    if as_json:
        print_json([asdict(one) | {"holds": one.holds} for one in found])
    for one in [] if as_json else found:
        used = count_of(one.used_in_ledger, "page")
        say(
            f"[bold]{escape(one.org)}[/]: {count_of(one.entries, 'charge')}, {used} used, "
            f"{one.held_in_reservations} held."
        )
        for words in one.drift:
            say(f"[red]✗[/] {escape(words)}", indent=2)
        if one.more:
            say(f"[dim]and {one.more} more[/]", indent=2)
        if one.holds:
            say("[green]✓ Counters, reservations, ledger and events agree.[/]", indent=2)
    if not all(one.holds for one in found):
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _recount(org: str | None) -> list[Recount]:
    from drivefeed.catalog.listing import org_named
    from drivefeed.catalog.recount import recount as add_up
    from drivefeed.cli.context import existing_catalog

    async with existing_catalog() as catalog:
        return await add_up(catalog, await org_named(catalog, org) if org else None)


def _instant(words: str | None) -> int | None:
    if words is None:
        return None
    from datetime import datetime

    from drivefeed.domain.amounts import instant_from

    try:
        return instant_from(datetime.fromisoformat(words))
    except ValueError:
        raise typer.BadParameter(
            f"'{words}' is no date; write it as 2027-01-31 or 2027-01-31T12:00Z."
        ) from None
