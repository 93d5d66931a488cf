"""From what Entra says to what drivefeed does: one table for every kind of sign-in.

Microsoft asks clients to key on ``error`` and not to depend on AADSTS numbers, which may change.
So ``error`` decides whether a person is needed; a number we know only makes the reason and the
sentence more exact, and one we do not know costs nothing but that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drivefeed.domain.errors import DrivefeedError, NeedsAttention, Throttled, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.account import WorkloadIdentity

if TYPE_CHECKING:
    from drivefeed.sources.graph.account import GraphAccount


@dataclass(frozen=True, slots=True)
class EntraRefusal:
    """An answer of the sign-in service that holds no token.

    Attributes:
        error: OAuth's error name; empty where there was none.
        text: the first sentence of the description, with its AADSTS number.
        status: the HTTP status; 0 where it is not known.
        told: seconds to wait, if the answer named any.
    """

    error: str
    text: str
    status: int = 0
    told: float | None = None

    @property
    def number(self) -> int:
        """The AADSTS number in the text; 0 without one."""
        found = re.search(r"AADSTS(\d{4,8})", self.text)
        return int(found[1]) if found else 0


_PASSING = frozenset({"temporarily_unavailable", "server_error", "request_timeout"})
_FAILING = frozenset({408, 500, 502, 504})
_THROTTLING = frozenset({429, 503})
_LOOP = 50196
_LOOP_SECONDS = 300.0
_BUSY_SECONDS = 30.0
_BAD_ASSERTION = 700027

_BY_ERROR: dict[str, tuple[Reason, str]] = {
    "invalid_grant": (Reason.NEEDS_SIGN_IN, "the stored sign-in is no longer accepted"),
    "login_required": (Reason.NEEDS_SIGN_IN, "somebody has to sign in again"),
    "interaction_required": (Reason.CONDITIONAL_ACCESS, "the tenant asks for more than that"),
    "consent_required": (Reason.CONSENT_MISSING, "nobody has consented to the app"),
    "unauthorized_client": (Reason.APP_UNKNOWN, "the app may not sign in this way"),
    "invalid_client": (Reason.CREDENTIAL_REFUSED, "the app's credential is not accepted"),
}

_EXPIRED = "the client secret has expired"
_FACTOR = "a second factor is asked for"
_UNTRUSTED = "the app has no federated credential that fits the token's"
_BY_NUMBER: dict[int, tuple[Reason, str]] = {
    50020: (Reason.USER_BLOCKED, "whoever signed in belongs to another tenant"),
    50034: (Reason.USER_BLOCKED, "the tenant does not know the person"),
    50057: (Reason.USER_BLOCKED, "the person's account is disabled"),
    50076: (Reason.CONDITIONAL_ACCESS, _FACTOR),
    50079: (Reason.CONDITIONAL_ACCESS, "a second factor has to be set up first"),
    50158: (Reason.CONDITIONAL_ACCESS, "an external check has to be passed"),
    50173: (Reason.NEEDS_SIGN_IN, "the sign-in was revoked, for example by a new password"),
    53000: (Reason.CONDITIONAL_ACCESS, "the device does not comply with the tenant's rules"),
    53003: (Reason.CONDITIONAL_ACCESS, "a conditional access policy blocks it"),
    65001: (Reason.CONSENT_MISSING, "nobody has consented to the app's permissions"),
    65004: (Reason.CONSENT_MISSING, "consent was declined"),
    70000: (Reason.NEEDS_SIGN_IN, "the refresh token is damaged or was used before"),
    70008: (Reason.NEEDS_SIGN_IN, "the refresh token has expired"),
    70021: (Reason.FEDERATION_MISSING, f"{_UNTRUSTED} contents"),
    70043: (Reason.NEEDS_SIGN_IN, "the tenant wants people to sign in more often"),
    90002: (Reason.TENANT_UNKNOWN, "the tenant is not known"),
    90094: (Reason.CONSENT_MISSING, "an administrator has to consent first"),
    700016: (Reason.APP_UNKNOWN, "the tenant does not know the app"),
    700021: (Reason.SIGN_IN_MISDIRECTED, "the certificate was used for another app"),
    700023: (Reason.SIGN_IN_MISDIRECTED, "the certificate was used for another sign-in address"),
    700024: (Reason.CLOCK_WRONG, "this machine's clock differs from Microsoft's"),
    700027: (Reason.CERTIFICATE_UNKNOWN, "the certificate is not registered with the app"),
    700082: (Reason.NEEDS_SIGN_IN, "the refresh token was not used for too long"),
    700084: (Reason.NEEDS_SIGN_IN, "the sign-in of a single-page app lasts a day only"),
    700211: (Reason.FEDERATION_MISSING, f"{_UNTRUSTED} issuer"),
    700212: (Reason.FEDERATION_MISSING, f"{_UNTRUSTED} audience"),
    700213: (Reason.FEDERATION_MISSING, f"{_UNTRUSTED} subject"),
    7000112: (Reason.APP_UNKNOWN, "the app is disabled in the tenant"),
    7000215: (Reason.SECRET_WRONG, "the client secret is wrong"),
    7000222: (Reason.SECRET_EXPIRED, _EXPIRED),
}


def sign_in_error(refusal: EntraRefusal, account: GraphAccount) -> DrivefeedError:
    """Return the error that fits a refusal; total: what is not known is tried again."""
    where = f"the sign-in of account '{account.name}'"
    if refusal.number == _LOOP:
        text = f"Microsoft sees a loop of requests in {where} ({refusal.text})."
        return Throttled(text, seconds=refusal.told or _LOOP_SECONDS)
    if refusal.status in _THROTTLING:
        text = f"Microsoft slowed {where} down: {refusal.text}"
        return Throttled(text, seconds=refusal.told or _BUSY_SECONDS)
    if refusal.status in _FAILING or refusal.error in _PASSING:
        return Transient(f"Microsoft could not serve {where} just now: {refusal.text}")
    found = _BY_NUMBER.get(refusal.number) or _BY_ERROR.get(refusal.error)
    if found is None:
        if not (refusal.error or refusal.number):
            return Transient(f"Something went wrong in {where}: {refusal.text}")
        found = (Reason.SIGN_IN_REFUSED, "the request is not accepted")
    reason, why = found
    if refusal.number == _BAD_ASSERTION and "expired" in refusal.text:
        reason, why = Reason.SECRET_EXPIRED, "the certificate has expired"
    if reason is Reason.CLOCK_WRONG and isinstance(account.sign_in, WorkloadIdentity):
        why = "the platform's token file is out of date, or this machine's clock is"
    return NeedsAttention(f"Microsoft refused {where}: {why} ({refusal.text}).", reason=reason)
