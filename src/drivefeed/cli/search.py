"""``search``: the best documents for some words, with the piece that shows why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from rich.style import Style
from rich.text import Text

from drivefeed.cli.context import (
    EXIT_NOT_CLEAN,
    answer_of,
    daemon_client,
    existing_parts,
    existing_settings,
    run,
)
from drivefeed.cli.output import on_terminal, print_json, say
from drivefeed.domain.visible import visible
from drivefeed.services.find import LONGEST_QUERY

if TYPE_CHECKING:
    from collections.abc import Sequence


def show_hits(query: str, limit: int, org: str | None, *, as_json: bool) -> None:
    """Show what is found; exit code 1 if nothing is."""
    if len(query) > LONGEST_QUERY:
        raise typer.BadParameter(
            f"A query has at most {LONGEST_QUERY:,} characters; this one has {len(query):,}."
        )
    found = run(_search(query, limit, org))
    if as_json:
        print_json(found)
    elif not found:
        say("Nothing found.")
    for number, hit in enumerate([] if as_json else found, start=1):
        if number > 1:
            say()
        show_hit(number, hit)
    if not found:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _search(query: str, limit: int, org: str | None) -> list[dict[str, Any]]:
    async with daemon_client(existing_settings()) as client:
        if client is not None:
            wanted: dict[str, Any] = {"q": query, "limit": limit}
            response = await client.get("/v1/search", params=wanted | ({"org": org} if org else {}))
            answer: list[dict[str, Any]] = answer_of(response)
            return answer
    from drivefeed.services.find import find

    async with existing_parts() as parts:
        hits = await find(parts.catalog, parts.searcher, query, org_name=org, limit=limit)
        return [hit.as_dict() for hit in hits]


def show_hit(number: int, hit: dict[str, Any]) -> None:
    """Show one document that was found."""
    place = Text(f"{number}. ", style="bold")
    place.append(visible(hit["path"]), style="bold")
    place.append(f"  page {hit['page']} · score {hit['score']:.2f}", style="dim")
    say(place)
    say(marked(hit["snippet"], hit["highlights"]), indent=3)
    if hit["web_url"]:
        address = visible(hit["web_url"])
        style = Style(dim=True, link=address) if on_terminal() else ""
        say(Text(address, style=style, overflow="fold"), indent=3)


def marked(words: str, ranges: Sequence[Sequence[int]]) -> Text:
    """Return a piece of text with the ranges that match a query made to stand out."""
    text = Text(words)
    for start, end in ranges:
        text.stylize("bold green", start, end)
    return text
