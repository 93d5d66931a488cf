"""``org``: the organizations whose documents are kept apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from drivefeed.catalog.orgs import Org

org_app = typer.Typer(
    name="org",
    help="Organizations: each has its own accounts, documents and usage.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]
Name = Annotated[str, typer.Argument(help="The organization's name.")]


@org_app.command()
def add(name: Name, *, as_json: Json = False) -> None:
    """Add an organization."""
    from drivefeed.catalog.orgs import add_org
    from drivefeed.cli.context import existing_catalog, os_user, run
    from drivefeed.cli.output import escape, print_json, say

    async def work() -> str:
        async with existing_catalog() as catalog:
            return await add_org(catalog, usable_name(name), actor=os_user())

    org_id = run(work())
    if as_json:
        print_json({"org_id": org_id, "name": name.strip()})
    else:
        say(f"Organization '{escape(name.strip())}' was added.")


@org_app.command("list")
def list_(*, as_json: Json = False) -> None:
    """List organizations."""
    from dataclasses import asdict

    from drivefeed.catalog.orgs import all_orgs
    from drivefeed.cli.context import existing_catalog, run
    from drivefeed.cli.output import escape, new_table, print_json, say

    async def work() -> list[Org]:
        async with existing_catalog() as catalog:
            return await all_orgs(catalog)

    found = run(work())
    if as_json:
        print_json([asdict(one) for one in found])
    elif not found:
        say("There is no organization yet. Add one with 'drivefeed org add'.")
    else:
        numbers = ("accounts", "connections")
        table = new_table("org", *numbers, right=frozenset(numbers))
        for one in found:
            table.add_row(escape(one.name), str(one.accounts), str(one.connections))
        say(table)


@org_app.command()
def rename(
    name: Name,
    to: Annotated[str, typer.Argument(help="Its new name.")],
    *,
    as_json: Json = False,
) -> None:
    """Give an organization another name; nothing else changes."""
    from drivefeed.catalog.orgs import rename_org
    from drivefeed.cli.context import existing_catalog, os_user, run
    from drivefeed.cli.output import escape, print_json, say

    async def work() -> str:
        async with existing_catalog() as catalog:
            return await rename_org(catalog, name, usable_name(to), actor=os_user())

    org_id = run(work())
    if as_json:
        print_json({"org_id": org_id, "name": to.strip()})
    else:
        say(f"Organization '{escape(name)}' is called '{escape(to.strip())}' now.")


def usable_name(name: str) -> str:
    """Return a name without blanks around it.

    Raises:
        typer.BadParameter: it is empty, too long, more than one line, or a secret.
    """
    from drivefeed.domain.names import name_problem

    name = name.strip()
    problem = name_problem(name)
    if problem is not None:
        raise typer.BadParameter(problem)
    return name
