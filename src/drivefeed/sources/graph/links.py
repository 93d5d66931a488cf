"""Which URLs may be followed, and which of them may be told our token."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address

import httpx

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
"""The hosts for which the SDK lets a token travel over plain http."""


def is_loopback(host: str) -> bool:
    """Tell whether a host name can only mean this machine."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _origin(url: httpx.URL) -> tuple[str, str, int]:
    return (url.scheme, url.host.lower(), url.port or (443 if url.scheme == "https" else 80))


def check_endpoint(base_url: str) -> None:
    """Check that a configured Graph URL may be sent tokens: https, or http on this machine.

    Raises:
        NeedsAttention: it may not; the configuration has to be repaired.
    """
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise NeedsAttention(
            f"The Graph URL {base_url!r} is not a URL ({error}).", reason=Reason.ADDRESS_UNUSABLE
        ) from error
    if url.scheme == "https" and url.host:
        return
    if url.scheme == "http" and url.host in _THIS_MACHINE:
        return
    raise NeedsAttention(
        f"The Graph URL {base_url!r} does not use https. Plain http is only allowed for a server "
        "on this machine, because the access token would travel in the clear.",
        reason=Reason.ADDRESS_UNUSABLE,
    )


def check_link(link: str, base_url: str) -> str:
    """Return a nextLink or deltaLink unchanged if it leads to the configured Graph host.

    The links are opaque and followed as they are, with our token; so scheme, host and port have
    to be those of the endpoint. httpx's own parser decides, since httpx will follow it.

    Raises:
        NeedsAttention: the link leads elsewhere; no request was made.
    """
    url = _parsed(link)
    if _origin(url) == _origin(_parsed(base_url)) and not url.userinfo:
        return link
    place = f"{url.scheme}://{url.host}" if url.host else "nowhere"
    raise NeedsAttention(
        f"Microsoft Graph gave a link that leads to {place}, which is not the configured Graph "
        "host. It was not followed, so that nobody else is sent the access token.",
        reason=Reason.SOURCE_MISBEHAVES,
    )


@lru_cache(maxsize=64)
def _parsed(link: str) -> httpx.URL:
    """Parse a link, which takes a while for one of some hundred characters and is done thrice.

    Returns:
        An empty URL for what is none.
    """
    try:
        return httpx.URL(link)
    except (httpx.InvalidURL, TypeError):
        return httpx.URL()


def kept_link(link: str, base_url: str) -> str:
    """Return a link in the form in which it is stored: without the endpoint, where it has it.

    A stored link lives as long as the drive; the endpoint belongs to the settings, and may move
    to another address meanwhile. Microsoft's own text behind it stays as it is.
    """
    return link[len(base_url) :] if link.startswith(f"{base_url}/") else link


def full_link(kept: str, base_url: str) -> str:
    """Return a stored link as it can be followed at the endpoint of today."""
    return f"{base_url}{kept}" if kept.startswith("/") else kept
