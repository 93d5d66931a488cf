"""Why nobody was reached, whichever library met it."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import httpx
import pytest
import requests

from drivefeed.outbound import Outbound
from drivefeed.sources.graph.unreached import why_unreached

if TYPE_CHECKING:
    from collections.abc import Callable

NOBODY = "https://login.nobody.invalid/tenant?secret=1"


@pytest.fixture
def closed() -> str:
    """A port on which nobody listens, as host:port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def by_requests(url: str, proxy: str | None) -> None:
    with requests.Session() as session:
        session.trust_env = False
        session.get(url, timeout=20, proxies={"https": proxy} if proxy else {})


def by_httpx(url: str, proxy: str | None) -> None:
    async def ask() -> None:
        async with httpx.AsyncClient(trust_env=False, proxy=proxy, timeout=20) as client:
            await client.get(url)

    asyncio.run(ask())


def met(ask: Callable[[str, str | None], None], url: str, proxy: str | None = None) -> str:
    with pytest.raises((requests.RequestException, httpx.HTTPError)) as raised:
        ask(url, proxy)
    return why_unreached(raised.value, url, Outbound(https_proxy=proxy))


@pytest.mark.parametrize("ask", [by_requests, by_httpx])
def test_what_stood_in_the_way_is_one_plain_sentence(
    ask: Callable[[str, str | None], None], closed: str
) -> None:
    unknown = met(ask, NOBODY)
    assert unknown.startswith("login.nobody.invalid:443: its name cannot be resolved. Check this")
    assert "drivefeed doctor" in unknown
    dead = met(ask, NOBODY, f"http://user:password@{closed}")
    assert dead.startswith(f"through the proxy {closed}: ")
    assert "refused" in dead.casefold()
    assert "Correct outbound.https_proxy" in dead
    refused = met(ask, f"https://{closed}/")
    assert refused.startswith(f"{closed}: ")
    assert "refused" in refused.casefold()
    for words in (unknown, dead, refused):
        assert "secret" not in words
        assert "password" not in words
        assert "Error" not in words
        assert "object at" not in words
