"""``web``: the status page as a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Final

from drivefeed.bootstrap import backend_credentials, open_memory
from drivefeed.cli.context import answer_of, daemon_client, existing_settings, run
from drivefeed.cli.key import new_link, port_of
from drivefeed.cli.output import print_json, say
from drivefeed.domain.errors import Part, PartDown
from drivefeed.embedding import index_name
from drivefeed.telemetry import configure_logs
from drivefeed.web.listening import is_loopback
from drivefeed.web.server import StatusPage

if TYPE_CHECKING:
    from drivefeed.settings import Settings
    from drivefeed.web.site import Seek

_SCREENS: Final = ("DISPLAY", "WAYLAND_DISPLAY")


def serve_pages(
    host: str | None, port: int | None, org: str | None, *, opens: bool, as_json: bool
) -> None:
    """Serve the status page until SIGTERM or Ctrl-C.

    Raises:
        NeedsAttention: the address cannot be bound.
    """
    settings = existing_settings()
    configure_logs(json=as_json or settings.log_json, level=settings.log_level)
    run(_serve(settings, host, port, org, opens=opens, as_json=as_json))


async def _serve(
    settings: Settings,
    host: str | None,
    port: int | None,
    org: str | None,
    *,
    opens: bool,
    as_json: bool,
) -> None:
    bind = host or settings.web_host
    async with open_memory(settings) as catalog:
        page = StatusPage(
            catalog,
            host=bind,
            port=port_of(settings) if port is None else port,
            url=settings.web_url,
            folder=settings.data_dir,
            seek=_seek(settings),
            index=index_name(settings),
            credentials=backend_credentials(settings),
            notifications_url=settings.notifications.url,
        )
        link = await new_link(catalog, org, page.url) if opens else None
        _tell(page, link, is_open=not is_loopback(bind), as_json=as_json)
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            closing: list[asyncio.Task[None]] = []
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(
                    number, lambda: closing.append(group.create_task(page.close()))
                )
            if link is not None and can_open():
                group.create_task(asyncio.to_thread(_open, link))
            await page.run()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)


def _tell(page: StatusPage, link: str | None, *, is_open: bool, as_json: bool) -> None:
    if as_json:
        print_json({"url": page.url, "link": link})
        return
    say(f"The status page is at {page.url} until Ctrl-C.")
    if link is None:
        say("'drivefeed key link' prints a link that signs a browser in.")
    else:
        say(f"This link signs one browser in, once, within ten minutes: {link}")
    if is_open and not page.site.is_https:
        say(
            "Others can reach it, and what they send is not encrypted: put a proxy with https "
            "before it, and name its address in web_url."
        )


def can_open() -> bool:
    """Whether there is a screen on which a browser can open."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in _SCREENS)


def _open(link: str) -> None:
    import webbrowser

    webbrowser.open(link)


def _seek(settings: Settings) -> Seek:
    """Return a search that asks the running daemon, to which the embedded index belongs."""

    async def seek(org_name: str, query: str, limit: int) -> list[dict[str, Any]]:
        async with daemon_client(settings) as client:
            if client is None:
                raise PartDown(
                    "Search needs the running daemon; start it with 'drivefeed up'.",
                    part=Part.INDEX,
                )
            asked = {"q": query, "limit": str(limit), "org": org_name}
            found: list[dict[str, Any]] = answer_of(await client.get("/v1/search", params=asked))
            return found

    return seek
