"""Entra's refusals: AADSTS number, OAuth error, HTTP status, and what it means in our words."""

from __future__ import annotations

from typing import Any

AADSTS: dict[int, tuple[str, int, str]] = {
    50034: ("invalid_grant", 400, "The account is not known in this directory."),
    50076: ("interaction_required", 400, "A second factor is required; sign in again."),
    50079: ("interaction_required", 400, "A second factor must be set up; sign in again."),
    50158: ("interaction_required", 400, "An external check is required; sign in again."),
    50173: ("invalid_grant", 400, "The grant was revoked; sign in again."),
    50196: ("invalid_grant", 400, "The same request was repeated too often."),
    53003: ("interaction_required", 400, "Conditional access refuses this sign-in."),
    65001: ("invalid_grant", 400, "Nobody has consented to this app."),
    70000: ("invalid_grant", 400, "The code or refresh token is malformed or was used before."),
    70008: ("invalid_grant", 400, "The code or refresh token has expired."),
    70011: ("invalid_scope", 400, "The scope is not valid."),
    70016: ("authorization_pending", 400, "The person has not answered yet; ask again."),
    70018: ("bad_verification_code", 400, "The device code is not one of ours."),
    70019: ("expired_token", 400, "The device code has expired."),
    70020: ("expired_token", 400, "The device code has expired."),
    70043: ("invalid_grant", 400, "The sign-in frequency policy ended this refresh token."),
    650051: ("authorization_declined", 400, "The person declined."),
    700016: ("unauthorized_client", 400, "The application is not known in this directory."),
    700082: ("invalid_grant", 400, "The refresh token expired because it was not used."),
    700084: ("invalid_grant", 400, "The refresh token of a single-page app has expired."),
    7000215: ("invalid_client", 401, "The client secret is wrong."),
    7000218: ("invalid_client", 401, "The request holds no client secret or assertion."),
    7000222: ("invalid_client", 401, "The client secret has expired."),
    50148: ("invalid_grant", 400, "The code verifier does not fit the code challenge."),
    50011: ("invalid_request", 400, "The redirect URI differs from the one the code was made for."),
    70003: ("unsupported_grant_type", 400, "This grant type is not supported."),
    90002: ("invalid_request", 400, "The tenant is not known."),
    90014: ("invalid_request", 400, "A required field is missing from the request."),
    90033: ("temporarily_unavailable", 503, "The service is busy; ask again later."),
}


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
        return {
            "error": self.error,
            "error_description": f"{self} Trace ID: {trace_id} Timestamp: {timestamp}",
            "error_codes": [self.number],
            "timestamp": timestamp,
            "trace_id": trace_id,
            "correlation_id": trace_id,
            "error_uri": f"{base}/error?code={self.number}",
        }
