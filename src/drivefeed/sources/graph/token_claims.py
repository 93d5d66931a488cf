"""What an access token says of itself. Only Graph may judge it; we read it to tell people."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """Who the token is for, and what it allows.

    Attributes:
        roles: rights of the app itself.
        scopes: rights of a signed-in person.
    """

    user: str | None
    app_name: str | None
    tenant_id: str | None
    roles: tuple[str, ...]
    scopes: tuple[str, ...]


def claims_of(token: str) -> TokenClaims | None:
    """Return what a token says; None for one that is not readable, as personal accounts' are."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004 - header, claims and signature
        return None
    try:
        claims: Any = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    if not isinstance(claims, dict):
        return None
    name = claims.get("preferred_username") or claims.get("upn") or claims.get("unique_name")
    roles = claims.get("roles")
    return TokenClaims(
        user=str(name) if name else None,
        app_name=str(claims["app_displayname"]) if claims.get("app_displayname") else None,
        tenant_id=str(claims["tid"]) if claims.get("tid") else None,
        roles=tuple(str(role) for role in roles) if isinstance(roles, list) else (),
        scopes=tuple(str(claims.get("scp") or "").split()),
    )
