"""The authorities that httpx trusts, read once in a process of tests.

Each client that says nothing of certificates reads all of them, also one that speaks to a Unix
socket or without TLS: 20 ms of processor time, for each look of a test at a daemon. What drivefeed
itself makes of authorities (:meth:`drivefeed.outbound.Outbound.tls`) is made each time.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from httpx._transports import default

if TYPE_CHECKING:
    import ssl

_NAMED_BY = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def read_authorities_once() -> None:
    """Give all clients that want the usual authorities one context, from now on."""
    clients: Any = default
    make = clients.create_ssl_context

    @cache
    def usual(_: tuple[str | None, ...]) -> ssl.SSLContext:
        made: ssl.SSLContext = make()
        return made

    def context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> ssl.SSLContext:  # noqa: FBT001, FBT002 - httpx's own signature
        if verify is not True or cert is not None or not trust_env:
            other: ssl.SSLContext = make(verify=verify, cert=cert, trust_env=trust_env)
            return other
        return usual(tuple(os.environ.get(name) for name in _NAMED_BY))

    clients.create_ssl_context = context
