"""Access tokens for Graph: JWTs whose claims follow what was consented, opaque for consumers."""

from __future__ import annotations

import base64
import secrets
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from graphsim.errors import GraphError
from graphsim.items import guid
from graphsim.rights import Caller
from graphsim.seals import BadSealError, Seals
from graphsim.tenancy import CONSUMERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphsim.clock import Clock
    from graphsim.tenancy import App, Directory, Person

_PURPOSE = "access"


class AccessTokens:
    """Makes and reads access tokens.

    Args:
        directory: Whose tokens they are.
        seals: Signs them.
        clock: Decides when they expire.
    """

    def __init__(self, directory: Directory, seals: Seals, clock: Clock) -> None:
        self._directory = directory
        self._seals = seals
        self._clock = clock
        self.generation = 1
        """Tokens of an earlier generation are refused."""

    def make(
        self, app: App, tenant_id: str, person: Person | None, permissions: Iterable[str]
    ) -> str:
        """Return a token for an app, or for an app on behalf of a person."""
        now = int(self._clock.now())
        claims: dict[str, Any] = {
            "aud": "https://graph.microsoft.com",
            "iss": f"https://sts.graphsim.invalid/{tenant_id}/",
            "iat": now,
            "nbf": now,
            "exp": self._clock.now() + self._directory.token_lifetime,
            "app_displayname": app.name,
            "appid": app.client_id,
            "tid": tenant_id,
            "uti": secrets.token_urlsafe(12),
            "ver": "1.0",
            "gen": self.generation,
        }
        if person is None:
            claims["idtyp"] = "app"
            claims["oid"] = str(uuid.UUID(guid(f"service principal:{app.client_id}")))
            claims["roles"] = sorted(permissions)
        else:
            claims |= {"idtyp": "user", "oid": person.id, "upn": person.name}
            claims |= {"name": person.display_name, "scp": " ".join(sorted(permissions))}
        if tenant_id == CONSUMERS:
            return "EwB" + self._seals.seal(_PURPOSE, claims)
        head = part({"typ": "JWT", "alg": "RS256", "kid": "graphsim"})
        body = f"{head}.{part(claims)}"
        return f"{body}.{self._seals.signature(_PURPOSE, body)}"

    def caller(self, authorization: str | None) -> Caller:
        """Check a bearer token of Graph and tell whose it is.

        Raises:
            GraphError: 401 when it is missing, made up, or expired.
        """
        kind, _, token = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not token:
            raise _unauthorized("Access token is empty.", "invalid_token")
        try:
            claims = self._claims(token)
        except BadSealError as error:
            raise _unauthorized("The access token is malformed.", "invalid_token") from error
        if claims["exp"] <= self._clock.now():
            raise _unauthorized("The access token has expired.", "expired_token")
        app = self._directory.apps.get(claims["appid"].lower())
        person = self._directory.people.get(claims["oid"]) if "scp" in claims else None
        if claims["gen"] != self.generation or app is None or ("scp" in claims and not person):
            raise _unauthorized("The access token was revoked.", "invalid_token")
        permissions = frozenset(claims.get("roles") or claims.get("scp", "").split())
        return Caller(app, person, claims["tid"], permissions)

    def _claims(self, token: str) -> dict[str, Any]:
        if token.startswith("EwB"):
            return self._seals.open(_PURPOSE, token[3:])
        body, _, signature = token.rpartition(".")
        if body.count(".") != 1 or not self._seals.is_signature(_PURPOSE, body, signature):
            raise BadSealError("The token was changed, or is not one of graphsim's.")
        encoded = body.partition(".")[2]
        claims: dict[str, Any] = msgspec.json.decode(
            base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        )
        return claims


def part(content: dict[str, Any]) -> str:
    """Return one part of a JWT."""
    return base64.urlsafe_b64encode(msgspec.json.encode(content)).decode().rstrip("=")


def _unauthorized(message: str, error: str) -> GraphError:
    challenge = f'Bearer realm="", error="{error}", error_description="{message}"'
    headers = {"WWW-Authenticate": challenge}
    return GraphError(401, "InvalidAuthenticationToken", message, None, headers)
