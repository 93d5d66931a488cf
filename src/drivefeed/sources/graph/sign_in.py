"""A person signs in: by a code on another device, or in a browser on this machine.

MSAL makes PKCE, state and nonce, and compares the last two. Since its version 1.38 it looks at
nothing else in an id token, so the app and the tenant are compared here.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.account import SignedInUser
from drivefeed.sources.graph.delegated_errors import of_exception, of_sign_in
from drivefeed.sources.graph.loopback import WRONG_STATE, fields_of, listening
from drivefeed.sources.graph.msal_app import PublicApp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from drivefeed.ports import Clock
    from drivefeed.sources.graph.account import GraphAccount

BROWSER_SECONDS = 900.0
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SLOWER_SECONDS = 5
_LEAST_INTERVAL = 1


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What the person has to do: open a page on any device, and enter a code."""

    url: str
    code: str
    expires_at: int
    """Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Who signed in, and MSAL's cache with their tokens.

    Attributes:
        tenant_id: the tenant they signed in to.
        scopes: what they consented to.
    """

    user: SignedInUser
    tenant_id: str
    scopes: tuple[str, ...]
    cache: str = field(repr=False)


async def sign_in_by_device(
    account: GraphAccount, *, clock: Clock, show: Callable[[DeviceCode], Awaitable[None]]
) -> SignedIn:
    """Wait until somebody entered the code and signed in.

    Args:
        account: whose app and tenant it is. If a person signed in with it before, only they may.
        show: tells the person what to do.

    Raises:
        NeedsAttention: they declined, took too long, or are somebody else.
        PartDown, Transient: the sign-in service did not answer.
    """
    async with _app(account) as app:
        flow = await _asked(account, lambda: app.app.initiate_device_flow(app.scopes))
        if "device_code" not in flow:
            raise of_sign_in(flow, account)
        until = clock.now() + int(float(flow["expires_in"]) * 1000)
        await show(DeviceCode(flow["verification_uri"], flow["user_code"], until))
        interval = max(_LEAST_INTERVAL, int(flow.get("interval", _SLOWER_SECONDS)))
        while True:
            result = await _asked(account, lambda: _poll(app, flow))
            match result.get("error"):
                case "authorization_pending":
                    pass
                case "slow_down":
                    interval += _SLOWER_SECONDS
                case None:
                    return _checked(app, result)
                case _:
                    raise of_sign_in(result, account)
            if clock.now() >= until:
                raise of_sign_in({"error": "expired_token"}, account)
            await clock.sleep(interval)


async def sign_in_by_browser(
    account: GraphAccount,
    *,
    open_url: Callable[[str], Awaitable[None]],
    pasted: Callable[[], Awaitable[str]] | None = None,
    again: Callable[[str], Awaitable[None]] | None = None,
) -> SignedIn:
    """Wait until somebody signed in with a browser.

    The answer comes to a port of this machine; where the browser is on another one, the person
    pastes the address that it was sent to.

    Args:
        account: whose app and tenant it is. If a person signed in with it before, only they may.
        open_url: shows or opens the sign-in page.
        pasted: returns an address that the person pasted.
        again: told why a pasted address was not taken; they may paste another.

    Raises:
        NeedsAttention: they declined, took too long, or are somebody else.
        PartDown, Transient: the sign-in service did not answer.
    """
    async with _app(account) as app, listening() as door:
        hint = account.sign_in.user_name if isinstance(account.sign_in, SignedInUser) else ""
        flow = await _asked(
            account,
            lambda: app.app.initiate_auth_code_flow(
                app.scopes,
                redirect_uri=door.redirect_uri,
                prompt="select_account",
                login_hint=hint or None,
            ),
        )
        if "auth_uri" not in flow:
            raise of_sign_in(flow, account)
        door.state = flow["state"]
        await open_url(flow["auth_uri"])
        waiting = [asyncio.create_task(door.answer(), name="browser's answer")]
        if pasted is not None:
            waiting.append(
                asyncio.create_task(_pasted_answer(door.state, pasted, again), name="pasted answer")
            )
        try:
            async with asyncio.timeout(BROWSER_SECONDS):
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise NeedsAttention(
                "Nobody signed in within 15 minutes, so the sign-in was given up. Start again.",
                reason=Reason.NEEDS_SIGN_IN,
            ) from None
        finally:
            for task in waiting:
                task.cancel()
        answer = done.pop().result()
        # The door stays open meanwhile, to tell a replayed answer what it is.
        result = await _asked(
            account, lambda: app.app.acquire_token_by_auth_code_flow(flow, answer)
        )
        if "access_token" not in result:
            raise of_sign_in(result, account)
        return _checked(app, result)


async def _pasted_answer(
    state: str,
    pasted: Callable[[], Awaitable[str]],
    again: Callable[[str], Awaitable[None]] | None,
) -> dict[str, str]:
    while True:
        fields = fields_of(await pasted())
        if fields.get("state") == state and fields.keys() & {"code", "error"}:
            return fields
        words = WRONG_STATE
        if not fields.keys() & {"code", "error"}:
            words = "This is not the address that the browser was sent to after the sign-in."
        if again is not None:
            await again(words)


def _poll(app: PublicApp, flow: dict[str, Any]) -> dict[str, Any]:
    result = app.app.acquire_token_by_device_flow(flow, exit_condition=lambda _: True)
    return dict(result)


def _checked(app: PublicApp, result: Mapping[str, Any]) -> SignedIn:
    """Compare the id token with what was asked for, and the person with whom we know.

    Raises:
        NeedsAttention: something does not fit; nothing of the answer is kept.
    """
    account = app.account
    claims = result.get("id_token_claims") or {}
    if claims.get("aud") != account.client_id:
        raise _mistrust("it was made for another app")
    tenant = str(claims.get("tid", ""))
    if _GUID.fullmatch(account.tenant_id) and tenant.lower() != account.tenant_id.lower():
        raise NeedsAttention(
            f"{claims.get('preferred_username', 'Whoever signed in')} signed in to tenant "
            f"{tenant}, and account '{account.name}' belongs to tenant {account.tenant_id}. "
            "Nothing was changed; sign in with an account of that tenant.",
            reason=Reason.WRONG_USER,
        )
    known = app.app.get_accounts()
    if len(known) != 1:
        raise _mistrust("it does not say who signed in")
    found = SignedInUser(str(known[0]["home_account_id"]), str(known[0]["username"]))
    _same_person(account, found)
    if not list(app.cache.search(app.cache.CredentialType.REFRESH_TOKEN)):
        raise NeedsAttention(
            "Microsoft gave no refresh token, so drivefeed could not go on without this person. "
            "Let the app registration have the permission offline_access, and start again.",
            reason=Reason.OFFLINE_ACCESS_MISSING,
        )
    return SignedIn(
        user=found,
        tenant_id=tenant,
        scopes=tuple(str(result.get("scope") or "").split()),
        cache=app.cache.serialize(),
    )


def _same_person(account: GraphAccount, found: SignedInUser) -> None:
    before = account.sign_in
    if not isinstance(before, SignedInUser) or not before.home_account_id:
        return
    if found.home_account_id != before.home_account_id:
        raise NeedsAttention(
            f"{found.user_name} signed in, and account '{account.name}' belongs to "
            f"{before.user_name}. Nothing was changed. Sign in as {before.user_name}; or, to read "
            f"other drives as {found.user_name}, add another account.",
            reason=Reason.WRONG_USER,
        )


def _mistrust(why: str) -> NeedsAttention:
    return NeedsAttention(
        f"The answer to the sign-in is not trusted: {why}. Nothing was changed; start again.",
        reason=Reason.NEEDS_SIGN_IN,
    )


@asynccontextmanager
async def _app(account: GraphAccount) -> AsyncIterator[PublicApp]:
    try:
        app = await asyncio.to_thread(PublicApp, account)
    except Exception as error:
        raise of_exception(error, account) from error
    try:
        yield app
    finally:
        app.close()


async def _asked(account: GraphAccount, ask: Callable[[], Any]) -> dict[str, Any]:
    """Ask MSAL in a thread, in our words where it fails."""
    try:
        result = await asyncio.to_thread(ask)
    except RuntimeError as error:
        if "nonce" not in str(error):
            raise of_exception(error, account) from error
        raise _mistrust("its nonce is another one, so it may be replayed") from None
    except Exception as error:
        raise of_exception(error, account) from error
    return dict(result)
