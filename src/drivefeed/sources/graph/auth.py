"""Tokens: azure-identity behind one credential per account, with our errors.

``Credential`` is what the client needs of any kind of sign-in; :class:`AppCredential` is the one
for an app, by whatever it proves itself (see :mod:`drivefeed.sources.graph.credentials`).
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any, Protocol

from drivefeed.domain.errors import DrivefeedError, NeedsAttention, Part, PartDown
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.account import WorkloadIdentity
from drivefeed.sources.graph.credentials import app_credential
from drivefeed.sources.graph.refused import EntraRefusal, sign_in_error
from drivefeed.sources.graph.unreached import why_unreached
from drivefeed.sources.graph.waits import told_wait

if TYPE_CHECKING:
    from collections.abc import Callable

    from azure.core.credentials import AccessToken
    from azure.core.credentials_async import AsyncTokenCredential

    from drivefeed.ports import Clock
    from drivefeed.sources.graph.account import GraphAccount

REFUSED_FOR = 60_000
"""Milliseconds a first refusal is remembered; each one in a row doubles it, up to the longest."""
LONGEST_REFUSED = 5 * 60_000
"""The cure lies with Microsoft (consent, a policy, an uploaded certificate): look for it often."""
LONGEST_REFUSED_HERE = 60 * 60_000
"""The cure is a change of the account, which makes the sign-in anew at once: never hammer."""
_CURED_HERE = frozenset(
    {
        Reason.SECRET_WRONG,
        Reason.SECRET_EXPIRED,
        Reason.TENANT_UNKNOWN,
        Reason.SIGN_IN_INCOMPLETE,
        Reason.SIGN_IN_MISDIRECTED,
        Reason.SIGN_IN_REFUSED,
        Reason.CREDENTIAL_REFUSED,
        Reason.ADDRESS_UNUSABLE,
    }
)


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
    """An app's own sign-in: by client secret, certificate or federated token."""

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
            build: makes the azure-identity credential; by default the one that fits the account.
        """
        self._account = account
        self._clock = clock
        self._build = build or app_credential
        self._inner: AsyncTokenCredential | None = None
        self._claims: str | None = None
        self._lock = asyncio.Lock()
        self._refusal: tuple[int, NeedsAttention] | None = None
        self._refusals = 0
        """Refusals in a row."""
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
                try:
                    self._inner = await asyncio.to_thread(self._build, self._account)
                except NeedsAttention as error:
                    self._remember(error)
                    raise
            options["claims"] = options.get("claims") or self._claims
            try:
                token = await self._inner.get_token(*scopes, **options)
            except Exception as error:
                ours = _translate(error, self._account, now=self._clock.now())
                if isinstance(ours, NeedsAttention):
                    self._remember(ours)
                raise ours from error
            self._claims = None
            self._refusal = None
            self._refusals = 0
            return token

    def _remember(self, refusal: NeedsAttention) -> None:
        """Answer with this refusal for a while, longer each time in a row."""
        longest = LONGEST_REFUSED_HERE if refusal.reason in _CURED_HERE else LONGEST_REFUSED
        wait = min(REFUSED_FOR * 2 ** min(self._refusals, 16), longest)
        self._refusals += 1
        self._refusal = (self._clock.now() + wait, refusal)

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
    how = account.sign_in
    if isinstance(how, WorkloadIdentity) and isinstance(error, OSError) and error.filename:
        return NeedsAttention(
            f"The token file '{how.token_file}' of account '{account.name}' cannot be read "
            f"({error.strerror}); the platform should have put it there.",
            reason=Reason.TOKEN_FILE_MISSING,
        )
    if isinstance(error, azure.ServiceRequestError | azure.ServiceResponseError | OSError):
        why = why_unreached(error, account.login_url, account.outbound)
        return PartDown(
            f"The sign-in service of account '{account.name}' could not be reached: {why}.",
            part=Part.SOURCE,
        )
    response = getattr(error, "response", None)
    code, text = _said(error, response)
    if not code and isinstance(error, azure.AzureError | ValueError):
        code = "refused"
    return sign_in_error(
        EntraRefusal(
            error=code,
            text=text,
            status=getattr(response, "status_code", None) or 0,
            told=told_wait(getattr(response, "headers", None) or {}, now=now),
        ),
        account,
    )


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
    return code, first[:400].rstrip(".")
