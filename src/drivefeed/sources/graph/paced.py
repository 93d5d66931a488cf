"""A credential that does not ask a sign-in service which asked to be left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain.budget import Lane
from drivefeed.domain.errors import Throttled

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken

    from drivefeed.ports import Clock
    from drivefeed.sources.graph.auth import Credential
    from drivefeed.sources.graph.budget import Gate

_MARGIN_MS: Final = 10 * 60_000
"""A token with more time left is handed out from memory, by every credential there is."""


class PacedCredential:
    """Waits for a gate before it asks for a fresh token, and closes it where Entra says so.

    Args:
        inner: does the work, and remembers tokens.
        gate: in front of the sign-in service; of all processes and accounts of the app.
    """

    def __init__(self, inner: Credential, gate: Gate, clock: Clock) -> None:
        self._inner = inner
        self._gate = gate
        self._clock = clock
        self._good_until = 0

    @property
    def generation(self) -> int:
        """See :class:`drivefeed.sources.graph.auth.Credential`."""
        return self._inner.generation

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """See :class:`drivefeed.sources.graph.auth.Credential`."""
        if self._clock.now() < self._good_until:
            return await self._inner.get_token(*scopes, **options)
        await self._gate.enter(0, Lane.CHANGES)
        try:
            token = await self._inner.get_token(*scopes, **options)
        except Throttled as error:
            error.seconds = max(error.seconds, await self._gate.close(error.seconds))
            raise
        await self._gate.passed()
        self._good_until = int(token.expires_on) * 1000 - _MARGIN_MS
        return token

    async def renew(self, generation: int, claims: str | None) -> None:
        """See :class:`drivefeed.sources.graph.auth.Credential`."""
        self._good_until = 0
        await self._inner.renew(generation, claims)

    async def close(self) -> None:
        """See :class:`drivefeed.sources.graph.auth.Credential`."""
        await self._inner.close()
