"""``key``: API keys are made, listed and ended; links sign a browser in once."""

from __future__ import annotations

import asyncio
import re
import socket
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote, urlsplit

import typer

from drivefeed.cli.context import existing_catalog, existing_settings, os_user, run
from drivefeed.cli.once import Commands
from drivefeed.domain.visible import visible
from drivefeed.web.door import word_of_page

if TYPE_CHECKING:
    from drivefeed.catalog.api_keys import ApiKey, FreshKey, Scope
    from drivefeed.catalog.engine import Catalog
    from drivefeed.settings import Settings

_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400}
_SPAN: Final = re.compile(r"([1-9]\d{0,5})([mhd])")
_NEVER: Final = "never"
_PORT: Final = 8765
_ANSWERS_WITHIN: Final = 1.0

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]
Org = Annotated[str | None, typer.Option(help="Whose key; needed where there are several.")]

app = Commands(help="API keys, and links that sign a browser in once.", no_args_is_help=True)


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="What it is for, so that you know it later.")],
    org: Org = None,
    scopes: Annotated[
        str,
        typer.Option(help="read, write or admin; each includes those before it."),
    ] = "read",
    expires: Annotated[
        str, typer.Option(help="After how long it ends: 30m, 12h, 90d, or never.")
    ] = "90d",
    *,
    as_json: Json = False,
) -> None:
    """Make an API key. It is shown once and kept nowhere."""
    from drivefeed.cli.output import print_json, say
    from drivefeed.cli.words import instant_of

    made = run(_create(name, org, _scopes(scopes), _lives_ms(expires)))
    if as_json:
        print_json({"key": made.text, **_dict(made.key)})
        return
    typer.echo(made.text)
    ends = instant_of(made.key.expires_at) if made.key.expires_at else "never"
    say(f"[dim]Keep it now: it is not shown again. It ends: {ends}.[/]")


@app.command("list")
def show(org: Org = None, *, as_json: Json = False) -> None:
    """List the API keys; none is shown whole."""
    from drivefeed.cli.output import escape, new_table, print_json, say
    from drivefeed.cli.words import instant_of

    found, now = run(_list(org))
    if as_json:
        print_json([_dict(one) for one in found])
        return
    if not found:
        say("There are no API keys.")
        return
    table = new_table("key", "name", "organization", "may", "last used", "ends")
    for one in found:
        ends = instant_of(one.expires_at) if one.expires_at else "never"
        if one.revoked_at is not None:
            ends = f"[red]revoked {instant_of(one.revoked_at)}[/]"
        elif not one.is_valid(now):
            ends = f"[red]ended {ends}[/]"
        table.add_row(
            f"{one.prefix}_…",
            escape(one.name),
            escape(one.org_name),
            " ".join(_words(one)),
            instant_of(one.used_at) if one.used_at else "never",
            ends,
        )
    say(table)


@app.command("revoke")
def revoke(
    which: Annotated[str, typer.Argument(help="Its name, or how it begins in 'key list'.")],
    org: Org = None,
    *,
    as_json: Json = False,
) -> None:
    """End a key at once, with the browsers that it signed in."""
    from drivefeed.cli.output import escape, print_json, say

    ended = run(_revoke(which.removesuffix("…").removesuffix("_"), org))
    if as_json:
        print_json([_dict(one) for one in ended])
    elif ended:
        names = ", ".join(f"{one.name} ({one.prefix})" for one in ended)
        say(f"Revoked: {escape(names)}")
    else:
        say("It was revoked before.")


@app.command("link")
def link(
    org: Org = None,
    url: Annotated[
        str | None, typer.Option(help="Where the status page is, if not where the settings say.")
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """Print a link that signs one browser in to the status page, once, within ten minutes."""
    from drivefeed.cli.output import echo, print_json

    address = run(_link(org, _page_url(url) if url is not None else None))
    if as_json:
        print_json({"link": address})
    else:
        echo(address)


async def new_link(catalog: Catalog, org: str | None, url: str) -> str:
    """Return the address of a fresh one-time link.

    Raises:
        NotFound: there is no such org, or there are several and none was named.
    """
    from drivefeed.catalog.listing import org_named
    from drivefeed.catalog.sessions import create_link

    org_id = await org_named(catalog, org)
    made = await create_link(catalog, org_id=org_id, name=os_user())
    return f"{url.rstrip('/')}/sign-in/once?link={quote(made.text)}"


async def _create(
    name: str, org: str | None, scopes: list[Scope], lives_ms: int | None
) -> FreshKey:
    from drivefeed.catalog.api_keys import create_key
    from drivefeed.catalog.listing import org_named

    async with existing_catalog() as catalog:
        org_id = await org_named(catalog, org)
        return await create_key(
            catalog, org_id=org_id, name=name, scopes=scopes, lives_ms=lives_ms, actor=os_user()
        )


async def _list(org: str | None) -> tuple[list[ApiKey], int]:
    from drivefeed.catalog.api_keys import list_keys
    from drivefeed.catalog.listing import org_named

    async with existing_catalog() as catalog:
        org_id = await org_named(catalog, org) if org is not None else None
        return await list_keys(catalog, org_id=org_id), catalog.clock.now()


async def _revoke(which: str, org: str | None) -> list[ApiKey]:
    from drivefeed.catalog.key_revoking import revoke_key
    from drivefeed.catalog.listing import org_named

    async with existing_catalog() as catalog:
        org_id = await org_named(catalog, org) if org is not None else None
        return await revoke_key(catalog, which, org_id=org_id, actor=os_user())


async def _link(org: str | None, url: str | None) -> str:
    from drivefeed.web.listening import address_of

    settings = existing_settings()
    running = None
    if not (url or settings.web_url):
        running = await asyncio.to_thread(_running_page, settings)
    async with existing_catalog() as catalog:
        usual = running or address_of(settings.web_host, port_of(settings))
        return await new_link(catalog, org, url or settings.web_url or usual)


def _running_page(settings: Settings) -> str | None:
    """Return where a page of this data folder runs, if one answers there."""
    url = word_of_page(settings.data_dir)
    parts = urlsplit(url or "")
    if url is None or parts.hostname is None:
        return None
    try:
        socket.create_connection((parts.hostname, parts.port or 80), _ANSWERS_WITHIN).close()
    except OSError:
        return None
    return url


def _page_url(url: str) -> str:
    from drivefeed.settings import PAGE_URL

    if not re.fullmatch(PAGE_URL, url) or visible(url) != url:
        raise typer.BadParameter(
            "--url is where the status page is, with nothing behind: https://feed.example or "
            "http://127.0.0.1:8765."
        )
    return url


def port_of(settings: Settings) -> int:
    """Return the port of the status page where none is named."""
    return _PORT if settings.web_port is None else settings.web_port


def _words(one: ApiKey) -> list[str]:
    from drivefeed.catalog.api_keys import Scope

    return [scope.value for scope in Scope if scope in one.scopes]


def _dict(one: ApiKey) -> dict[str, Any]:
    return asdict(one) | {"kind": one.kind.name.lower(), "scopes": _words(one)}


def _scopes(words: str) -> list[Scope]:
    from drivefeed.catalog.api_keys import Scope

    named = [word.strip().lower() for word in words.replace(" ", ",").split(",") if word.strip()]
    unknown = [word for word in named if word not in set(Scope)]
    if unknown or not named:
        raise typer.BadParameter(f"Scopes are {', '.join(Scope)}; there is no '{words}'.")
    return [Scope(word) for word in named]


def _lives_ms(words: str) -> int | None:
    if words == _NEVER:
        return None
    match = _SPAN.fullmatch(words.strip().lower())
    if match is None:
        raise typer.BadParameter(f"'{words}' is no span of time; say 30m, 12h, 90d or never.")
    return int(match[1]) * _UNITS[match[2]] * 1000
