"""OAuth 2.0 grants: what is checked, and what comes back."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

import msgspec

from graphsim.entra_codes import EntraError
from graphsim.seals import BadSealError, Seals

if TYPE_CHECKING:
    from graphsim.clock import Clock

_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
_CODE_LIFETIME = 600
_DEVICE_LIFETIME = 900
_REFRESH_LIFETIME = 90 * 86400


class Directory(msgspec.Struct):
    """The tenant: one app registration and one person, with knobs over tokens."""

    tenant_id: str
    client_id: str
    client_secret: str
    user_id: str
    user_name: str
    token_lifetime: float = 3599
    """Seconds an access token is good for."""
    strict_rotation: bool = False
    """A refresh token dies when it is used (Entra leaves the old one alive)."""


class _Pending(msgspec.Struct):
    """An authorization code or device code that waits to be exchanged."""

    expires: float
    scope: str
    challenge: str = ""
    method: str = "plain"
    redirect_uri: str = ""
    nonce: str = ""
    user_code: str = ""
    accepted: bool | None = None


class Grants:
    """Issues tokens. Codes live in memory; access and refresh tokens outlive a restart."""

    def __init__(self, directory: Directory, seals: Seals, clock: Clock) -> None:
        self._directory = directory
        self._seals = seals
        self._clock = clock
        self._codes: dict[str, _Pending] = {}
        self._devices: dict[str, _Pending] = {}
        self._used: set[str] = set()
        self.generation = 1
        """Raised by :meth:`revoke_access_tokens`."""
        self.refresh_generation = 1

    def exchange(
        self, form: dict[str, str], basic: tuple[str, str] | None, issuer: str
    ) -> dict[str, Any]:
        """Answer a request to the token endpoint.

        Args:
            form: The fields of the request.
            basic: Client id and secret of an Authorization header.
            issuer: For id tokens.

        Raises:
            EntraError: The refusal.
        """
        client, secret = basic or (form.get("client_id", ""), form.get("client_secret"))
        if client.lower() != self._directory.client_id.lower():
            raise EntraError(700016, f"(client_id {client or 'missing'})")
        if secret and secret != self._directory.client_secret:
            raise EntraError(7000215)
        match form.get("grant_type"):
            case "client_credentials":
                if not secret:
                    raise EntraError(7000218)
                return self._answer(user=False, scope=form.get("scope", ""))
            case "refresh_token":
                return self._refreshed(form, issuer)
            case "authorization_code":
                pending = self._redeemed(form)
            case kind if kind == _DEVICE:
                pending = self._polled(form.get("device_code", form.get("code", "")))
            case kind:
                raise EntraError(70003 if kind else 90014)
        return self._signed_in(form, pending.scope, issuer, pending.nonce)

    def refresh_token(self, scope: str = "Files.Read.All offline_access") -> str:
        """Return a fresh refresh token of the person, as after a sign-in."""
        facts = {
            "exp": self._clock.now() + _REFRESH_LIFETIME,
            "scope": scope,
            "n": secrets.token_hex(8),
            "gen": self.refresh_generation,
        }
        return self._seals.seal("refresh", facts)

    def revoke_access_tokens(self) -> None:
        """Make Graph refuse every access token given so far."""
        self.generation += 1

    def revoke_refresh_tokens(self) -> None:
        """Make the token endpoint refuse every refresh token given so far."""
        self.refresh_generation += 1

    def start_code(self, options: dict[str, str]) -> str:
        """Sign the person in at once and return the authorization code.

        Raises:
            EntraError: Required options are missing, or the app is unknown.
        """
        if options.get("client_id", "").lower() != self._directory.client_id.lower():
            raise EntraError(700016)
        if not options.get("redirect_uri"):
            raise EntraError(90014, "(redirect_uri)")
        code = secrets.token_urlsafe(24)
        self._codes[code] = _Pending(
            expires=self._clock.now() + _CODE_LIFETIME,
            scope=options.get("scope", ""),
            challenge=options.get("code_challenge", ""),
            method=options.get("code_challenge_method", "plain"),
            redirect_uri=options["redirect_uri"],
            nonce=options.get("nonce", ""),
        )
        return code

    def start_device(self, form: dict[str, str]) -> dict[str, Any]:
        """Return a new device code that waits for the person's answer."""
        if form.get("client_id", "").lower() != self._directory.client_id.lower():
            raise EntraError(700016)
        device, user = secrets.token_urlsafe(24), secrets.token_hex(4).upper()
        self._devices[device] = _Pending(
            expires=self._clock.now() + _DEVICE_LIFETIME,
            scope=form.get("scope", ""),
            user_code=user,
        )
        return {
            "user_code": user,
            "device_code": device,
            "expires_in": _DEVICE_LIFETIME,
            "interval": 5,
        }

    def answer_device(self, user_code: str, *, accept: bool) -> bool:
        """Record the person's answer to a device code; false for an unknown code."""
        for pending in self._devices.values():
            if pending.user_code == user_code.upper():
                pending.accepted = accept
                return True
        return False

    def _redeemed(self, form: dict[str, str]) -> _Pending:
        pending = self._codes.pop(form.get("code", ""), None)
        if pending is None:
            raise EntraError(70000)
        if pending.expires < self._clock.now():
            raise EntraError(70008)
        if pending.redirect_uri != form.get("redirect_uri", pending.redirect_uri):
            raise EntraError(50011)
        if pending.challenge and _challenge(form, pending.method) != pending.challenge:
            raise EntraError(50148)
        return pending

    def _polled(self, device: str) -> _Pending:
        pending = self._devices.get(device)
        if pending is None:
            raise EntraError(70018)
        if pending.expires < self._clock.now():
            raise EntraError(70020)
        if pending.accepted is None:
            raise EntraError(70016)
        del self._devices[device]
        if not pending.accepted:
            raise EntraError(650051)
        return pending

    def _refreshed(self, form: dict[str, str], issuer: str) -> dict[str, Any]:
        token = form.get("refresh_token", "")
        try:
            facts = self._seals.open("refresh", token)
        except BadSealError as error:
            raise EntraError(70000) from error
        if facts["exp"] < self._clock.now():
            raise EntraError(700082)
        if facts["gen"] != self.refresh_generation:
            raise EntraError(50173)
        if self._directory.strict_rotation:
            if facts["n"] in self._used:
                raise EntraError(70000)
            self._used.add(facts["n"])
        return self._signed_in(form, form.get("scope") or facts["scope"], issuer, "")

    def _signed_in(
        self, form: dict[str, str], scope: str, issuer: str, nonce: str
    ) -> dict[str, Any]:
        answer = self._answer(user=True, scope=scope)
        answer["refresh_token"] = self.refresh_token(scope)
        if "openid" in scope.split():
            answer["id_token"] = self._id_token(issuer, nonce)
        if form.get("client_info"):
            ids = {"uid": self._directory.user_id, "utid": self._directory.tenant_id}
            answer["client_info"] = _part(ids)
        return answer

    def _answer(self, *, user: bool, scope: str) -> dict[str, Any]:
        lifetime = self._directory.token_lifetime
        facts = {
            "exp": self._clock.now() + lifetime,
            "user": user,
            "gen": self.generation,
            "n": secrets.token_hex(4),
        }
        return {
            "token_type": "Bearer",
            "scope": scope,
            "expires_in": int(lifetime),
            "ext_expires_in": int(lifetime),
            "access_token": self._seals.seal("access", facts),
        }

    def _id_token(self, issuer: str, nonce: str) -> str:
        now = int(self._clock.now())
        claims: dict[str, Any] = {
            "iss": issuer, "aud": self._directory.client_id, "iat": now, "nbf": now,
            "exp": now + 3600, "oid": self._directory.user_id, "sub": self._directory.user_id,
            "tid": self._directory.tenant_id, "preferred_username": self._directory.user_name,
            "name": "Drive Owner", "ver": "2.0",
        }  # fmt: skip
        if nonce:
            claims["nonce"] = nonce
        signature = base64.urlsafe_b64encode(b"not checked by any client").decode().rstrip("=")
        return f"{_part({'alg': 'HS256', 'typ': 'JWT'})}.{_part(claims)}.{signature}"


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


def _part(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(content)).decode().rstrip("=")
