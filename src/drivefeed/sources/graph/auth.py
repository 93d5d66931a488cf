"""Tokens: azure-identity behind one credential per account, with our errors.

``Credential`` is what the client needs of any kind of sign-in; :class:`AppCredential` is the one
for an app with a secret.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from typing import TYPE_CHECKING, Any, Protocol

from drivefeed.domain.errors import (
    DrivefeedError,
    NeedsAttention,
    Part,
    PartDown,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.account import CLOUDS, ClientSecret
from drivefeed.sources.graph.waits import told_wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from azure.core.credentials import AccessToken
    from azure.core.credentials_async import AsyncTokenCredential

    from drivefeed.ports import Clock
    from drivefeed.sources.graph.account import GraphAccount

REFUSED_FOR = 60_000
"""Milliseconds a refusal is remembered, so that a wrong secret does not hammer the sign-in."""

_SIGN_IN = frozenset(
    {"invalid_grant", "interaction_required", "consent_required", "login_required"}
)
_PASSING = frozenset({"temporarily_unavailable", "server_error"})
_FAILING = frozenset({408, 500, 502, 504})
_THROTTLING = frozenset({429, 503})
_OBJECT = re.compile(r" ssl:<[^>]*>")
"""What aiohttp says of its own objects; it tells a person nothing."""


class Credential(Protocol):
    """Where tokens come from; also an azure-core ``AsyncTokenCredential``."""

    @property
    def generation(self) -> int:
        """Number of times :meth:`renew` took effect."""
        ...

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """Return a token that is valid for a while yet.

        Raises:
            NeedsAttention: the sign-in is refused.
            PartDown, Throttled, Transient: the sign-in service does not answer, or not now.
        """
        ...

    async def renew(self, generation: int, claims: str | None) -> None:
        """Let go of a token Graph refused, once, however many requests saw the refusal.

        Args:
            generation: the value of :attr:`generation` before the refused request.
            claims: the claims challenge in the refusal.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class AppCredential:
    """An app's own sign-in by client secret."""

    def __init__(
        self,
        account: GraphAccount,
        clock: Clock,
        build: Callable[[GraphAccount], AsyncTokenCredential] | None = None,
    ) -> None:
        """Prepare; nothing is imported or asked for yet.

        Args:
            account: whose sign-in it is.
            clock: for how long a refusal is remembered.
            build: makes the azure-identity credential; by default one with the client secret.
        """
        self._account = account
        self._clock = clock
        self._build = build or secret_credential
        self._inner: AsyncTokenCredential | None = None
        self._claims: str | None = None
        self._lock = asyncio.Lock()
        self._refusal: tuple[int, NeedsAttention] | None = None
        self._generation = 0

    @property
    def generation(self) -> int:
        """Number of renewals; see :class:`Credential`."""
        return self._generation

    async def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """Return a token; see :class:`Credential`. One request at a time asks for a fresh one."""
        async with self._lock:
            if self._refusal and self._clock.now() < self._refusal[0]:
                raise NeedsAttention(str(self._refusal[1]), reason=self._refusal[1].reason)
            if self._inner is None:
                self._inner = await asyncio.to_thread(self._build, self._account)
            options["claims"] = options.get("claims") or self._claims
            try:
                token = await self._inner.get_token(*scopes, **options)
            except Exception as error:
                ours = _translate(error, self._account, now=self._clock.now())
                if isinstance(ours, NeedsAttention):
                    self._refusal = (self._clock.now() + REFUSED_FOR, ours)
                raise ours from error
            self._claims = None
            self._refusal = None
            return token

    async def renew(self, generation: int, claims: str | None) -> None:
        """Forget the token; see :class:`Credential`.

        azure-identity has no way to drop a cached token, so the credential is made anew.
        """
        async with self._lock:
            if generation != self._generation:
                return
            self._generation += 1
            self._claims = decoded_claims(claims)
            await self._close()

    async def close(self) -> None:
        """Close connections."""
        async with self._lock:
            await self._close()

    async def _close(self) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            await inner.close()


def secret_credential(account: GraphAccount) -> AsyncTokenCredential:
    """Make azure-identity's client secret credential; imports it, so call this in a thread."""
    from azure.identity.aio import ClientSecretCredential

    quiet = logging.getLogger("azure")
    if quiet.level == logging.NOTSET:
        quiet.setLevel(logging.ERROR)
    official = account.login_url in {cloud.login for cloud in CLOUDS.values()}
    assert isinstance(account.sign_in, ClientSecret)
    try:
        return ClientSecretCredential(
            account.tenant_id,
            account.client_id,
            account.sign_in.secret,
            authority=account.login_url,
            # Discovery asks Microsoft whether the authority is one of its own.
            disable_instance_discovery=not official,
            connection_verify=account.ca_file or True,
            connection_timeout=15,
            read_timeout=30,
            retry_total=1,
        )
    except ValueError as error:
        raise NeedsAttention(
            f"The sign-in of account '{account.name}' is incomplete: {error}",
            reason=Reason.MISCONFIGURED,
        ) from error


def decoded_claims(claims: str | None) -> str | None:
    """A challenge arrives in base64; Entra wants the JSON inside."""
    if not claims:
        return None
    from base64 import urlsafe_b64decode

    try:
        return urlsafe_b64decode(claims + "=" * (-len(claims) % 4)).decode()
    except ValueError:
        return None


def _translate(error: Exception, account: GraphAccount, *, now: int) -> DrivefeedError:
    """Return our error for whatever azure-identity raised."""
    from azure.core import exceptions as azure

    if isinstance(error, DrivefeedError):
        return error
    where = f"the Microsoft sign-in of account '{account.name}'"
    if isinstance(error, azure.ServiceRequestError | azure.ServiceResponseError | OSError):
        return PartDown(
            f"{where[0].upper()}{where[1:]} could not be reached at {account.login_url} "
            f"({_OBJECT.sub('', str(error))[:200]}).",
            part=Part.SOURCE,
        )
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None) or 0
    told = told_wait(getattr(response, "headers", None) or {}, now=now)
    code, text = _said(error, response)
    refused = _refusal(code, error)
    if status in _THROTTLING:
        return Throttled(f"Microsoft slowed {where} down: {text}", seconds=told or 30.0)
    if status in _FAILING or code in _PASSING:
        return Transient(f"Microsoft could not serve {where} just now: {text}")
    if refused is not None:
        return NeedsAttention(f"Microsoft refused {where}: {text}", reason=refused)
    return Transient(f"Something went wrong in {where}: {type(error).__name__}: {text}")


def _refusal(code: str, error: Exception) -> Reason | None:
    """Tell what a person has to repair; None for an error that is none of the sign-in's."""
    from azure.core.exceptions import AzureError

    if code in _SIGN_IN:
        return Reason.NEEDS_SIGN_IN
    return Reason.MISCONFIGURED if isinstance(error, AzureError | ValueError) else None


def _said(error: Exception, response: Any) -> tuple[str, str]:
    """Return Entra's error name and its first sentence, which carries the AADSTS code."""
    document: Any = None
    try:
        document = json.loads(response.text()) if response is not None else None
    except Exception:  # noqa: BLE001 (the body is a courtesy; without it there is still the text)
        document = None
    text = str(error)
    name = re.search(r"error '\((\w+)\)", text)
    code = name[1] if name else ""
    if isinstance(document, dict):
        code = str(document.get("error") or code)
        text = str(document.get("error_description") or text)
    first = text.strip().splitlines()[0] if text.strip() else type(error).__name__
    return code, f"{code}: {first[:400]}" if code else first[:400]
