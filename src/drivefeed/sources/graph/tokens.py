"""What keeps a person's tokens between refreshes, as the Graph source sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager


@dataclass(frozen=True, slots=True)
class KeptTokens:
    """MSAL's token cache as it was kept.

    Attributes:
        revision: rises with each new cache.
    """

    cache: str = field(repr=False)
    revision: int


class TokenStore(Protocol):
    """Keeps one token cache per account, for all processes of an installation."""

    async def load(self, account_id: str) -> KeptTokens | None:
        """Return the newest cache, or None where there is none.

        Raises:
            NeedsAttention: it cannot be opened.
        """
        ...

    async def revision(self, account_id: str) -> int | None:
        """Return the revision of the newest cache without opening it."""
        ...

    async def save(self, account_id: str, cache: str, *, after: int | None) -> int | None:
        """Keep a cache in place of the one with revision ``after``, durably.

        Returns:
            Its revision; None where there is a newer one, and nothing was kept.
        """
        ...

    def turn(self, account_id: str) -> AbstractAsyncContextManager[None]:
        """Wait for the right to refresh, and hold it: one holder at a time among all processes.

        A holder that dies loses it after a while; one that is late can lose it too, so
        :meth:`save` checks for itself.

        Raises (on entering):
            Transient: somebody else holds it for too long.
        """
        ...
