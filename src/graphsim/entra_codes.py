"""Entra's refusals: AADSTS number, OAuth error, HTTP status, and what it means in our words.

The numbers come from Microsoft's list of sign-in errors and from reports of users; which ``error``
goes with some of them is general knowledge, not measured on a live tenant.
"""

from __future__ import annotations

from typing import Any

AADSTS: dict[int, tuple[str, int, str]] = {
    50011: ("invalid_request", 400, "The redirect URI differs from the one the code was made for."),
    50020: ("invalid_grant", 400, "The account is of another tenant, which has no access here."),
    50027: ("invalid_request", 400, "The assertion is no JWT, or is malformed."),
    50034: ("invalid_grant", 400, "The account is not known in this directory."),
    50057: ("invalid_grant", 400, "The account is disabled."),
    50076: ("interaction_required", 400, "A second factor is required; sign in again."),
    50079: ("interaction_required", 400, "A second factor must be set up; sign in again."),
    50148: ("invalid_grant", 400, "The code verifier does not fit the code challenge."),
    50158: ("interaction_required", 400, "An external check is required; sign in again."),
    50173: ("invalid_grant", 400, "The grant was revoked; sign in again."),
    50196: ("invalid_grant", 400, "The same request was repeated too often."),
    53003: ("interaction_required", 400, "Conditional access refuses this sign-in."),
    65001: ("invalid_grant", 400, "Nobody has consented to this app."),
    65004: ("access_denied", 400, "The person declined to consent."),
    70000: ("invalid_grant", 400, "The code or refresh token is malformed or was used before."),
    70003: ("unsupported_grant_type", 400, "This grant type is not supported."),
    70008: ("invalid_grant", 400, "The code or refresh token has expired."),
    70011: ("invalid_scope", 400, "The scope is not valid."),
    70016: ("authorization_pending", 400, "The person has not answered yet; ask again."),
    70018: ("bad_verification_code", 400, "The device code is not one of ours."),
    70019: ("expired_token", 400, "The device code has expired."),
    70020: ("expired_token", 400, "The device code has expired."),
    70043: ("invalid_grant", 400, "The sign-in frequency policy ended this refresh token."),
    90002: ("invalid_request", 400, "The tenant is not known."),
    90014: ("invalid_request", 400, "A required field is missing from the request."),
    90033: ("temporarily_unavailable", 503, "The service is busy; ask again later."),
    90094: ("access_denied", 400, "An administrator has to consent first."),
    650051: ("authorization_declined", 400, "The person declined."),
    700016: ("unauthorized_client", 400, "The application is not known in this directory."),
    700021: ("invalid_client", 401, "The assertion names another application."),
    700023: ("invalid_client", 401, "The assertion is made for another audience."),
    700024: ("invalid_client", 401, "The assertion is not within its valid time range."),
    700027: ("invalid_client", 401, "The assertion contains an invalid signature."),
    700082: ("invalid_grant", 400, "The refresh token expired because it was not used."),
    700084: ("invalid_grant", 400, "The refresh token of a single-page app has expired."),
    700211: ("invalid_client", 401, "No federated identity is registered for this issuer."),
    700212: ("invalid_client", 401, "No federated identity is registered for this audience."),
    700213: ("invalid_client", 401, "No federated identity is registered for this subject."),
    7000112: ("unauthorized_client", 400, "The application is disabled."),
    7000215: ("invalid_client", 401, "The client secret is wrong."),
    7000218: ("invalid_client", 401, "The request holds no client secret or assertion."),
    7000222: ("invalid_client", 401, "The client secret has expired."),
}
_SUBERRORS = {65001: "consent_required", 50076: "basic_action", 50079: "basic_action"}
_SUBERRORS |= {53003: "message_only", 50158: "additional_action", 50173: "bad_token"}
_SUBERRORS |= {70008: "bad_token", 70043: "token_expired", 700082: "bad_token"}


class EntraError(Exception):
    """A refusal of the token endpoint.

    Args:
        number: The AADSTS number; unknown ones become ``invalid_request``.
        detail: Added to the sentence of the number.
    """

    def __init__(self, number: int, detail: str = "") -> None:
        error, status, sentence = AADSTS.get(number, ("invalid_request", 400, "Refused."))
        super().__init__(f"AADSTS{number}: {sentence}{' ' + detail if detail else ''}")
        self.number = number
        self.error = error
        self.status = status

    def body(self, trace_id: str, timestamp: str, base: str) -> dict[str, Any]:
        """Return the JSON body that goes with the refusal."""
        content: dict[str, Any] = {
            "error": self.error,
            "error_description": f"{self} Trace ID: {trace_id} Timestamp: {timestamp}",
            "error_codes": [self.number],
            "timestamp": timestamp,
            "trace_id": trace_id,
            "correlation_id": trace_id,
            "error_uri": f"{base}/error?code={self.number}",
        }
        if self.number in _SUBERRORS:
            content["suberror"] = _SUBERRORS[self.number]
        return content
