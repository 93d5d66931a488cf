"""Why nobody was reached, in one sentence: whatever library met it, and through which proxy."""

from __future__ import annotations

import os
import socket
import ssl
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drivefeed.outbound import Outbound

_PORTS = {"http": 80, "https": 443}
_LONGEST = 160


def why_unreached(error: BaseException, url: str, outbound: Outbound) -> str:
    """Return what stood in the way, without a full stop, and what to look at, as a sentence.

    Args:
        error: what a library raised; its causes tell more than its own text.
        url: what was asked; of it, only host and port are told.
        outbound: the way out, with the proxy of the URL if it has one.
    """
    proxy = outbound.proxy_for(url)
    where = _place(proxy or url)
    # aiohttp has an SSLError of its own around Python's, without what that says.
    failed = [one for one in _causes(error) if isinstance(one, ssl.SSLError)]
    if failed:
        told = [getattr(one, "verify_message", "") for one in reversed(failed)]
        said = next((one for one in told if one), "no encrypted connection came about")
        return (
            f"{_place(url)}: its certificate is not trusted here ({said}). If it is yours, or a "
            "proxy's, name its authority in the account's ca_file or in outbound.ca_file"
        )
    cause = f"{where}: {_cause(error)}"
    if proxy:
        return (
            f"through the proxy {cause}. Correct outbound.https_proxy and outbound.http_proxy (or "
            "HTTPS_PROXY and HTTP_PROXY), or name the host in outbound.no_proxy"
        )
    return (
        f"{cause}. Check this machine's name server and firewall; where only a proxy leads out, "
        "name it in outbound.https_proxy. 'drivefeed doctor' looks at each of them"
    )


def _place(url: str) -> str:
    """Return host and port, without what a URL may hold besides."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'no host'}:{parts.port or _PORTS.get(parts.scheme, 443)}"


def _cause(error: BaseException) -> str:
    found = list(_causes(error))
    for one in found:
        if isinstance(one, socket.gaierror):
            return "its name cannot be resolved"
    for one in reversed(found):
        if isinstance(one, TimeoutError):
            return "no answer in time"
        if isinstance(one, OSError) and one.errno:
            return os.strerror(one.errno)
    return " ".join(str(found[-1]).split())[:_LONGEST] or type(found[-1]).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__
