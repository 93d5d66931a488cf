"""A person's sign-in that goes on without them: refresh tokens, kept before they are used.

Each refresh gives a new refresh token, and the old one may die with it. So: one refresh at a time
per account, whatever process wants it; always from the newest cache; and the new cache is kept
before anybody uses what is in it. What cannot be helped: a process that dies after Entra answered
and before the cache is kept takes the new token with it. Entra leaves the old one alive for that.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import NeedsAttention, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.account import SignedInUser
from drivefeed.sources.graph.auth import decoded_claims
from drivefeed.sources.graph.delegated_errors import of_exception, of_result
from drivefeed.sources.graph.msal_app import PublicApp

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from azure.core.credentials import AccessToken

    from drivefeed.ports import Checkpoint, Clock
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.tokens import KeptTokens, TokenStore

REFUSED_FOR = 3_600_000
"""Milliseconds a refusal is remembered, unless somebody signs in again meanwhile."""
_MARGIN_SECONDS = 300.0
"""A token with less time left is not handed out; a tenth of its life where it lives shortly."""


@dataclass(frozen=True, slots=True)
class _Token:
    value: str = field(repr=False)
    expires_on: int
    """Seconds since the epoch."""
    use_until: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    until: int
    revision: int | None
    error: NeedsAttention


class DelegatedCredential:
    """A signed-in person's tokens; a :class:`drivefeed.sources.graph.auth.Credential`."""

    def __init__(
        self,
        account: GraphAccount,
        store: TokenStore,
        *,
        clock: Clock,
        checkpoint: Checkpoint,
    ) -> None:
        """Prepare; nothing is imported or asked for yet.

        Args:
            account: whose ``sign_in`` is a :class:`SignedInUser`.
            store: where the tokens are kept.
            clock: tells how long tokens and refusals last.
            checkpoint: passed before and after a new cache is kept.
        """
        assert isinstance(account.sign_in, SignedInUser)
        self._account = account
        self._user = account.sign_in
        self._store = store
        self._clock = clock
        self._checkpoint = checkpoint
        self._app: PublicApp | None = None
        self._token: _Token | None = None
        self._refused_token: str | None = None
        self._claims: str | None = None
        self._refusal: _Refusal | None = None
        self._generation = 0
        self._lock = asyncio.Lock()

    @property
    def generation(self) -> int:
        """Number of renewals; see :class:`drivefeed.sources.graph.auth.Credential`."""
        return self._generation

    async def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        """Return a token; see :class:`drivefeed.sources.graph.auth.Credential`.

        The scopes are those that the person consented to, whatever the caller names.
        """
        from azure.core.credentials import AccessToken

        async with self._lock:
            if self._token is None or self._token.use_until <= self._now():
                await self._check_refusal()
                self._token = await self._kept_token() or await self._refresh()
                self._refusal = None
                self._claims = None
            return AccessToken(self._token.value, self._token.expires_on)

    async def renew(self, generation: int, claims: str | None) -> None:
        """Let go of the token; see :class:`drivefeed.sources.graph.auth.Credential`."""
        async with self._lock:
            if generation != self._generation:
                return
            self._generation += 1
            if self._token is not None:
                self._refused_token = self._token.value
            self._token = None
            self._claims = decoded_claims(claims)

    async def close(self) -> None:
        """Close connections, and forget what is in memory."""
        async with self._lock:
            self._drop_app()
            self._token = None

    def _drop_app(self) -> None:
        """MSAL answers the same again for a while after an error; a new app asks anew."""
        app, self._app = self._app, None
        if app is not None:
            app.close()

    def _now(self) -> float:
        return self._clock.now() / 1000

    async def _check_refusal(self) -> None:
        """Raise the last refusal again, so that the sign-in service is not asked for nothing."""
        if self._refusal is None or self._clock.now() >= self._refusal.until:
            return
        if await self._store.revision(self._account.account_id) == self._refusal.revision:
            raise NeedsAttention(str(self._refusal.error), reason=self._refusal.error.reason)
        self._refusal = None

    async def _kept_token(self) -> _Token | None:
        """Return a token that another process, or this one before, has kept."""
        kept = await self._store.load(self._account.account_id)
        return None if kept is None else await self._usable(kept)

    async def _usable(self, kept: KeptTokens) -> _Token | None:
        if self._claims is not None:
            return None
        app = await self._opened()
        app.cache.deserialize(kept.cache)
        best: _Token | None = None
        for entry in app.access_tokens(self._user.home_account_id):
            token = self._token_of(
                entry["secret"], int(entry["cached_at"]), int(entry["expires_on"])
            )
            fresh = token.use_until > self._now() and token.value != self._refused_token
            if fresh and (best is None or token.expires_on > best.expires_on):
                best = token
        return best

    def _token_of(self, value: str, since: float, expires_on: int) -> _Token:
        margin = min(_MARGIN_SECONDS, (expires_on - since) / 10)
        return _Token(value, expires_on, expires_on - margin)

    async def _refresh(self) -> _Token:
        """Get new tokens in our turn, from the newest cache, and keep them before use."""
        account_id = self._account.account_id
        async with self._store.turn(account_id):
            kept = await self._store.load(account_id)
            if kept is None:
                raise self._refuse(
                    None,
                    NeedsAttention(
                        f"Nobody signed in with account '{self._account.name}' yet. Run "
                        f"'drivefeed account reconnect {self._account.name}'.",
                        reason=Reason.NEEDS_SIGN_IN,
                    ),
                )
            found = await self._usable(kept)
            if found is not None:
                return found
            return await _unbroken(self._exchange(kept))

    async def _exchange(self, kept: KeptTokens) -> _Token:
        app = await self._opened()
        asked_at = self._now()
        try:
            with passing(self._checkpoint, "tokens.ask"):
                result, cache = await asyncio.to_thread(
                    _exchanged, app, kept.cache, self._user.home_account_id, self._claims
                )
        except Exception as error:
            status, told = app.last(now=self._clock.now())
            self._drop_app()
            if type(error).__name__ != "MsalServiceError":
                raise of_exception(error, self._account) from error
            # Answers of 500 and above are raised by MSAL, the others returned.
            result = {"error_description": str(error)}
            raise of_result(result, self._account, status=status, told=told) from error
        revision: int | None = kept.revision
        if cache is not None:
            # Even a refusal may have changed it.
            with passing(self._checkpoint, "tokens.save"):
                revision = await self._store.save(
                    self._account.account_id, cache, after=kept.revision
                )
        if "access_token" not in result:
            status, told = app.last(now=self._clock.now())
            self._drop_app()
            ours = of_result(result, self._account, status=status, told=told)
            raise self._refuse(revision, ours) if isinstance(ours, NeedsAttention) else ours
        if revision is None:
            return await self._overtaken()
        expires_on = int(asked_at + float(result.get("expires_in") or 0))
        return self._token_of(str(result["access_token"]), asked_at, expires_on)

    async def _overtaken(self) -> _Token:
        """Somebody kept a newer cache meanwhile; ours is forgotten, with the token in it."""
        found = await self._kept_token()
        if found is None:
            raise Transient(
                f"Another process refreshed the sign-in of account '{self._account.name}' at the "
                "same time; it is tried again."
            )
        return found

    def _refuse(self, revision: int | None, error: NeedsAttention) -> NeedsAttention:
        self._refusal = _Refusal(self._clock.now() + REFUSED_FOR, revision, error)
        return error

    async def _opened(self) -> PublicApp:
        if self._app is None:
            try:
                self._app = await asyncio.to_thread(PublicApp, self._account)
            except Exception as error:
                ours = of_exception(error, self._account)
                if isinstance(ours, NeedsAttention):
                    revision = await self._store.revision(self._account.account_id)
                    raise self._refuse(revision, ours) from error
                raise ours from error
        return self._app


async def _unbroken(work: Coroutine[Any, Any, _Token]) -> _Token:
    """Finish what was begun even if we are cancelled: an answer that is not kept is lost."""
    task = asyncio.create_task(work, name="token refresh")
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _exchanged(
    app: PublicApp, cache: str, home_account_id: str, claims: str | None
) -> tuple[dict[str, Any], str | None]:
    """Refresh in a thread; return MSAL's result, and the cache if it changed."""
    app.cache.deserialize(cache)
    result = app.refreshed(home_account_id, claims)
    return result, app.cache.serialize() if app.cache.has_state_changed else None
