"""What azure-identity sends its requests for tokens through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
from azure.core.pipeline.transport import AioHttpTransport

if TYPE_CHECKING:
    import ssl


class TrustingTransport(AioHttpTransport):  # type: ignore[misc]  # it has no types
    """Trusts what a context trusts.

    Told of a file with authorities instead, azure-core loads it anew for every request, which
    stops the event loop for some 50 ms each time.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(use_env_settings=False)
        self._context = context
        self._is_fresh = True

    async def open(self) -> None:
        """Open a session, once; see azure-core, which refuses one that was closed."""
        if self._is_fresh:
            self._is_fresh = False
            self.session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._context),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        await super().open()
