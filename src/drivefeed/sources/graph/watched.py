"""A credential that tells what became of each sign-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import NeedsAttention, PartDown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from azure.core.credentials import AccessToken

    from drivefeed.sources.graph.auth import Credential


class WatchedCredential:
    """Passes everything on to another credential, and tells what became of each sign-in.

    Args:
        inner: the credential that does the work.
        noted: called after each token (None), each refusal and each try that nobody answered; it
            should do nothing where that is no news, because tokens are asked for with every
            request.
    """

    def __init__(
        self,
        inner: Credential,
        noted: Callable[[NeedsAttention | PartDown | None], Awaitable[None]],
    ) -> None:
        self._inner = inner
        self._noted = noted

    @property
    def generation(self) -> int:
        """See :class:`drivefeed.sources.graph.auth.Credential`."""
        return self._inner.generation

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """See :class:`drivefeed.sources.graph.auth.Credential`."""
        try:
            token = await self._inner.get_token(*scopes, **options)
        except (NeedsAttention, PartDown) as error:
            await self._noted(error)
            raise
        await self._noted(None)
        return token

    async def renew(self, generation: int, claims: str | None) -> None:
        """See :class:`drivefeed.sources.graph.auth.Credential`."""
        await self._inner.renew(generation, claims)

    async def close(self) -> None:
        """See :class:`drivefeed.sources.graph.auth.Credential`."""
        await self._inner.close()
