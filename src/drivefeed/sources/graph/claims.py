"""What an access token says of itself, for probes and better sentences; never for a decision.

A token is Microsoft Graph's to read, not ours: nothing is verified, tokens of personal accounts
are opaque, and Microsoft may make others opaque too. Neither token nor claims are logged.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass

import msgspec

_PARTS = 3


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """The claims of a token that drivefeed shows.

    Attributes:
        permissions: the ``roles`` of an app's token, the ``scp`` of a person's.
        user: the person's sign-in name; None for the app's own token.
    """

    app_id: str
    app_name: str
    tenant_id: str
    user: str | None
    permissions: frozenset[str]


class _Payload(msgspec.Struct):
    appid: str = ""
    app_displayname: str = ""
    tid: str = ""
    upn: str = ""
    unique_name: str = ""
    scp: str | None = None
    roles: list[str] = []


def read_claims(token: str) -> TokenClaims | None:
    """Return what a token says, or None for one that cannot be read."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        return None
    try:
        raw = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        payload = msgspec.json.decode(raw, type=_Payload)
    except (ValueError, msgspec.MsgspecError):
        return None
    scopes = payload.scp.split() if payload.scp is not None else payload.roles
    user = (payload.upn or payload.unique_name or "?") if payload.scp is not None else None
    return TokenClaims(
        app_id=payload.appid,
        app_name=payload.app_displayname,
        tenant_id=payload.tid,
        user=user,
        permissions=frozenset(scopes),
    )
