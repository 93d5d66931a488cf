"""Authorization codes and device codes: made for a person's answer, exchanged once."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from graphsim.entra_codes import EntraError

if TYPE_CHECKING:
    from graphsim.clock import Clock
    from graphsim.tenancy import App, Directory, Person

DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
_CODE_LIFETIME = 600


@dataclass
class Pending:
    """A sign-in that is under way, or done and waiting to be exchanged."""

    app: App
    tenant_id: str
    scope: str
    person: Person | None = None
    expires: float = 0.0
    challenge: str = ""
    method: str = "plain"
    redirect_uri: str = ""
    nonce: str = ""
    user_code: str = ""
    accepted: bool | None = None
    refused: int | None = None
    """The AADSTS number that the person at the page was refused with."""


class Codes:
    """The codes that are waiting, in memory."""

    def __init__(self, directory: Directory, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._codes: dict[str, Pending] = {}
        self._devices: dict[str, Pending] = {}

    def peek(self, form: dict[str, str]) -> Pending | None:
        """Return what a request to the token endpoint would exchange."""
        named = form.get("device_code", form.get("code", ""))
        return self._codes.get(named) or self._devices.get(named)

    def start_code(self, options: dict[str, str], app: App, tenant_id: str, person: Person) -> str:
        """Return an authorization code for somebody who has just signed in."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = Pending(
            app, tenant_id, options.get("scope", ""), person,
            expires=self._clock.now() + _CODE_LIFETIME,
            challenge=options.get("code_challenge", ""),
            method=options.get("code_challenge_method", "plain"),
            redirect_uri=options["redirect_uri"],
            nonce=options.get("nonce", ""),
        )  # fmt: skip
        return code

    def start_device(self, form: dict[str, str], app: App, tenant_id: str) -> dict[str, Any]:
        """Return a new device code that waits for a person's answer."""
        device, user = secrets.token_urlsafe(24), secrets.token_hex(4).upper()
        announced = self._directory.device_lifetime
        dies = self._directory.device_dies_after
        self._devices[device] = Pending(
            app, tenant_id, form.get("scope", ""),
            expires=self._clock.now() + (announced if dies is None else dies),
            user_code=user,
        )  # fmt: skip
        return {
            "user_code": user,
            "device_code": device,
            "expires_in": int(announced),
            "interval": 5,
        }

    def of_device(self, user_code: str) -> Pending | None:
        """Return the sign-in that a code on a device's screen belongs to, while it waits."""
        for pending in self._devices.values():
            if pending.user_code == user_code.upper() and pending.expires >= self._clock.now():
                return pending
        return None

    def answer_device(self, user_code: str, person: Person, *, accept: bool) -> bool:
        """Record a person's answer to a device code; false for an unknown or dead code."""
        pending = self.of_device(user_code)
        if pending is None:
            return False
        pending.accepted, pending.person = accept, person
        return True

    def refuse_device(self, user_code: str, number: int) -> None:
        """End a device code because whoever entered it was refused.

        The real page tells them and lets the code wait on; here the client hears of it at once.
        """
        for pending in self._devices.values():
            if pending.user_code == user_code.upper():
                pending.refused = number

    def redeem(self, form: dict[str, str], app: App) -> Pending:
        """Return the sign-in behind an authorization code, once.

        Raises:
            EntraError: The code is unknown, used, expired, or does not fit the request.
        """
        pending = self._codes.pop(form.get("code", ""), None)
        if pending is None or pending.app is not app:
            raise EntraError(70000)
        if pending.expires < self._clock.now():
            raise EntraError(70008)
        if pending.redirect_uri != form.get("redirect_uri", pending.redirect_uri):
            raise EntraError(50011)
        if pending.challenge and _challenge(form, pending.method) != pending.challenge:
            raise EntraError(50148)
        return pending

    def poll(self, form: dict[str, str], app: App) -> Pending:
        """Return the sign-in behind a device code, once it was answered.

        Raises:
            EntraError: It is not answered yet, declined, expired or unknown.
        """
        device = form.get("device_code", form.get("code", ""))
        pending = self._devices.get(device)
        if pending is None or pending.app is not app:
            raise EntraError(70018)
        if pending.expires < self._clock.now():
            raise EntraError(70020)
        if pending.refused is not None:
            raise EntraError(pending.refused)
        if pending.accepted is None:
            raise EntraError(70016)
        del self._devices[device]
        if not pending.accepted:
            raise EntraError(650051)
        return pending


def basic_credentials(header: str | None) -> tuple[str, str] | None:
    """Return client id and secret of a Basic Authorization header (RFC 6749 section 2.3.1)."""
    kind, _, value = (header or "").partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        client, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except ValueError:
        return None
    return unquote_plus(client), unquote_plus(secret)


def _challenge(form: dict[str, str], method: str) -> str:
    verifier = form.get("code_verifier", "")
    if method != "S256":
        return verifier
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
