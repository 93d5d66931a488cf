"""An app that has a new certificate, which Microsoft may not know yet, beside its old sign-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import NeedsAttention

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from azure.core.credentials import AccessToken

    from drivefeed.sources.graph.auth import Credential


class RenewingCredential:
    """Signs in by the new certificate where Microsoft takes it, else by what there was before.

    A refusal of the new one is remembered by its own credential for up to five minutes, so an
    upload is found that soon.

    Args:
        new: signs in by the new certificate.
        old: signs in by what the account had.
        accepted: called once, after the first token by the new one.
    """

    def __init__(
        self, new: Credential, old: Credential, accepted: Callable[[], Awaitable[None]]
    ) -> None:
        self._new = new
        self._old = old
        self._accepted = accepted
        self._is_accepted = False
        self._generation = 0

    @property
    def generation(self) -> int:
        """See :class:`drivefeed.sources.graph.auth.Credential`."""
        return self._generation

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """See :class:`drivefeed.sources.graph.auth.Credential`.

        Where both are refused, the refusal of the new certificate is told: it is the one that
        somebody is about to cure.
        """
        try:
            token = await self._new.get_token(*scopes, **options)
        except NeedsAttention as refused:
            if self._is_accepted:
                raise
            try:
                return await self._old.get_token(*scopes, **options)
            except NeedsAttention:
                raise refused from None
        if not self._is_accepted:
            self._is_accepted = True
            await self._accepted()
        return token

    async def renew(self, generation: int, claims: str | None) -> None:
        """See :class:`drivefeed.sources.graph.auth.Credential`."""
        if generation != self._generation:
            return
        self._generation += 1
        for one in (self._new, self._old):
            await one.renew(one.generation, claims)

    async def close(self) -> None:
        """See :class:`drivefeed.sources.graph.auth.Credential`."""
        await self._new.close()
        await self._old.close()
