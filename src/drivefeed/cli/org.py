"""``org``: the organizations whose documents are kept apart."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from drivefeed.cli.once import Commands

if TYPE_CHECKING:
    from drivefeed.catalog.orgs import Org

org_app = Commands(
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


@org_app.command()
def embedding(
    name: Name,
    *,
    provider: Annotated[
        str | None,
        typer.Option("--provider", help="local, multilingual, openai or ollama."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="The model's name at a service.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="The service, if not at its usual address.")
    ] = None,
    dimension: Annotated[
        int | None,
        typer.Option("--dimension", help="Numbers in a vector, for a model that is not known."),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", help="Most tokens of a text.")
    ] = None,
    query_prefix: Annotated[
        str | None, typer.Option("--query-prefix", help="In front of queries.")
    ] = None,
    document_prefix: Annotated[
        str | None, typer.Option("--document-prefix", help="In front of documents.")
    ] = None,
    batch: Annotated[
        int | None, typer.Option("--batch", help="Most texts of a request to a service.")
    ] = None,
    timeout_seconds: Annotated[
        float | None, typer.Option("--timeout-seconds", help="For one request to a service.")
    ] = None,
    key_file: Annotated[
        Path | None, typer.Option("--key-file", help="A file with the service's key.")
    ] = None,
    shorten: Annotated[
        bool, typer.Option("--shorten", help="Ask for vectors of just that dimension (openai).")
    ] = False,
    key_stdin: Annotated[
        bool, typer.Option("--key-stdin", help="Read the service's key from standard input.")
    ] = False,
    installation: Annotated[
        bool, typer.Option("--installation", help="Be with the installation's embedding again.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only tell what the choice would mean.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show or choose what an organization is embedded with.

    A choice changes nothing in search until 'drivefeed reindex --org NAME' has built it beside and
    swapped. Without --provider, the options change what is chosen already: its address or its key.
    """
    from drivefeed.cli.org_embedding import Asked, choose_embedding

    given = {
        "provider": provider,
        "model": model,
        "base_url": base_url,
        "dimension": dimension,
        "max_tokens": max_tokens,
        "query_prefix": query_prefix,
        "document_prefix": document_prefix,
        "shorten": shorten or None,
        "batch": batch,
        "timeout_seconds": timeout_seconds,
    }
    fields = {key: value for key, value in given.items() if value is not None}
    asked = Asked(fields, key_file, key_stdin, installation, plan)
    choose_embedding(name, asked, as_json=as_json)


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
