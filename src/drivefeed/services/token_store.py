"""The token store over the catalog: sealed, one writer at a time, and never backwards."""

from __future__ import annotations

import re
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from drivefeed.catalog.credentials import CredentialKind, load, revision_of, save
from drivefeed.catalog.heartbeats import release_lease, take_lease
from drivefeed.domain.errors import Transient
from drivefeed.domain.redact import hide
from drivefeed.sources.graph.tokens import KeptTokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.secrets.ring import KeyRing

TURN_MS = 60_000
"""How long a turn lasts at most; a refresh makes two requests of 15 seconds each."""
_LOOK_AGAIN_SECONDS = 0.2
_TOKENS = re.compile(r'"secret":\s*"([^"]+)"')
"""How MSAL writes tokens into its cache."""


class CatalogTokenStore:
    """Keeps token caches as credentials; see :class:`drivefeed.sources.graph.tokens.TokenStore`.

    Args:
        turn_ms: after so long, the turn of a holder that died is another's.
    """

    def __init__(self, catalog: Catalog, ring: KeyRing, *, turn_ms: int = TURN_MS) -> None:
        self._catalog = catalog
        self._ring = ring
        self._turn_ms = turn_ms

    async def load(self, account_id: str) -> KeptTokens | None:
        """Return the newest cache, or None."""
        found = await load(self._catalog, self._ring, account_id, CredentialKind.TOKENS)
        if found is None:
            return None
        cache = found.plain.decode()
        hide(*_TOKENS.findall(cache))
        return KeptTokens(cache, found.revision)

    async def revision(self, account_id: str) -> int | None:
        """Return the revision of the newest cache without opening it."""
        return await revision_of(self._catalog, account_id, CredentialKind.TOKENS)

    async def save(self, account_id: str, cache: str, *, after: int | None) -> int | None:
        """Keep a cache in place of the one with revision ``after``; None where it was too late."""
        hide(*_TOKENS.findall(cache))
        return await save(
            self._catalog,
            self._ring,
            account_id,
            CredentialKind.TOKENS,
            cache.encode(),
            after=after,
        )

    @asynccontextmanager
    async def turn(self, account_id: str) -> AsyncIterator[None]:
        """Hold the right to refresh, by a lease of the catalog.

        Every turn has a name of its own, so that two tasks of one process wait for each other.
        """
        name = f"tokens-{account_id}"
        owner = self._catalog.ids.new()
        started = time.monotonic()
        while await take_lease(self._catalog, name, owner, for_ms=self._turn_ms) is None:
            if (time.monotonic() - started) * 1000 > 2 * self._turn_ms:
                raise Transient(
                    "Another process has been refreshing this sign-in for too long; it is tried "
                    "again."
                )
            pause = _LOOK_AGAIN_SECONDS * (0.5 + self._catalog.ids.fraction())
            await self._catalog.clock.sleep(pause)
        try:
            yield
        finally:
            await release_lease(self._catalog, name, owner)
