"""HTTP clients that follow nothing, remember nothing and log nothing."""

from __future__ import annotations

import logging
from http.cookiejar import DefaultCookiePolicy
from typing import TYPE_CHECKING

import httpx

from drivefeed import __version__
from drivefeed.domain.errors import Transient

if TYPE_CHECKING:
    from drivefeed.sources.graph.account import GraphAccount

COMPANY = "drivefeed"
"""Whose traffic it is, where the settings name nobody."""
READ_TIMEOUT = 60.0
"""Seconds of silence; answers that begin only after half a minute were reported."""
_CONNECT_TIMEOUT = 15.0


def user_agent(account: GraphAccount) -> str:
    """Return the form Microsoft asks for, so that its operators can tell whose traffic it is.

    Traffic that is not decorated so is slowed down first (Microsoft's throttling page).
    """
    return f"NONISV|{account.outbound.company or COMPANY}|drivefeed/{__version__}"


def open_http(account: GraphAccount, read_timeout: float) -> httpx.AsyncClient:
    """Make an HTTP client that follows no redirect and keeps no cookie.

    Loads certificates, so call this in a thread. Proxies are those of ``account.outbound``.

    Raises:
        NeedsAttention: the CA file cannot be read.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=32)
    http = httpx.AsyncClient(
        transport=account.outbound.transport(account.ca_file, limits=limits),
        trust_env=False,
        timeout=httpx.Timeout(read_timeout, connect=_CONNECT_TIMEOUT),
        follow_redirects=False,
        headers={"User-Agent": user_agent(account)},
    )
    http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    # At INFO, httpx writes whole URLs to the log; httpcore at DEBUG writes Location headers. Both
    # would put download URLs there, which open a file to anybody.
    for name in ("httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    return http


async def read_body(response: httpx.Response, limit: int) -> bytes:
    """Read a body of at most ``limit`` bytes.

    Raises:
        Transient: it is longer.
        httpx.HTTPError: it broke off.
    """
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > limit:
            raise Transient(
                f"Microsoft Graph answered with more than {limit} bytes where a short answer "
                "was expected."
            )
        parts.append(part)
    return b"".join(parts)
