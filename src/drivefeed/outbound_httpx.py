"""httpx by way of :class:`drivefeed.outbound.Outbound`: each URL directly or through its proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    import ssl

    from drivefeed.outbound import Outbound


class RoutedTransport(httpx.AsyncBaseTransport):
    """Sends each request the way that its URL asks for.

    A client that was given a transport takes no proxy from the environment by itself.
    """

    def __init__(
        self, outbound: Outbound, tls: ssl.SSLContext, limits: httpx.Limits | None
    ) -> None:
        self._outbound = outbound
        self._tls = tls
        self._limits = limits or httpx.Limits(max_connections=100, max_keepalive_connections=20)
        self._ways: dict[str | None, httpx.AsyncHTTPTransport] = {None: self._made(None)}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        proxy = self._outbound.proxy_for(str(request.url))
        if proxy not in self._ways:
            self._ways[proxy] = self._made(proxy)
        return await self._ways[proxy].handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        for way in self._ways.values():
            await way.aclose()

    def _made(self, proxy: str | None) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(
            verify=self._tls,
            limits=self._limits,
            proxy=httpx.Proxy(proxy, ssl_context=self._proxy_tls(proxy)) if proxy else None,
            trust_env=False,
        )

    def _proxy_tls(self, proxy: str) -> ssl.SSLContext | None:
        """A proxy that is itself spoken to over TLS is trusted like everybody else."""
        return self._tls if proxy.startswith("https:") else None
