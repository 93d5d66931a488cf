"""A person signs in at the command line: told what to do, and heard where they paste."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from drivefeed.cli.output import echo
from drivefeed.cli.words import local_time
from drivefeed.sources.graph.sign_in import DeviceCode, sign_in_by_browser, sign_in_by_device

if TYPE_CHECKING:
    from drivefeed.ports import Clock
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.sign_in import SignedIn


async def person_signs_in(
    account: GraphAccount, *, clock: Clock, by_browser: bool, as_json: bool
) -> SignedIn:
    """Have somebody sign in, and wait for it.

    Args:
        account: whose app and tenant it is.
        clock: how long a code is good.
        by_browser: with a browser, rather than by a code.
        as_json: standard output is for the answer; what to do is told on standard error.
    """

    def tell(words: str) -> None:
        echo(words, err=as_json)

    async def show_code(code: DeviceCode) -> None:
        until = local_time(code.expires_at).strftime("%H:%M")
        tell(f"Open {code.url} on any device and enter the code {code.code} (until {until}).")

    async def show_page(url: str) -> None:
        opened = _has_browser() and await asyncio.to_thread(_open, url)
        tell("Sign in with the browser that opens, or at this address:" if opened else
             "Open this address in a browser and sign in:")  # fmt: skip
        tell(url)
        if _can_paste():
            tell(
                "Is the browser on another machine? It ends at a page that does not open; paste "
                "that page's address here."
            )

    async def again(words: str) -> None:
        tell(words)

    if not by_browser:
        return await sign_in_by_device(account, clock=clock, show=show_code)
    pasted = _pasted_line if _can_paste() else None
    return await sign_in_by_browser(account, open_url=show_page, pasted=pasted, again=again)


def _has_browser() -> bool:
    """Whether a browser would open a window, rather than take the terminal."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform == "darwin" or any(os.environ.get(name) for name in names)


def _open(url: str) -> bool:
    import webbrowser

    return webbrowser.open(url)


def _can_paste() -> bool:
    try:
        return sys.stdin.isatty()
    except ValueError:
        return False


async def _pasted_line() -> str:
    """Return the next line from the terminal, without a thread that nobody could end."""
    loop = asyncio.get_running_loop()
    line: asyncio.Future[str] = loop.create_future()
    fd = sys.stdin.fileno()

    def read() -> None:
        words = os.read(fd, 65_536).decode("utf-8", "replace")
        if not words:
            # Ctrl-D: nothing will be pasted any more, but the browser may still answer.
            loop.remove_reader(fd)
        elif not line.done():
            line.set_result(words)

    loop.add_reader(fd, read)
    try:
        return await line
    finally:
        loop.remove_reader(fd)
