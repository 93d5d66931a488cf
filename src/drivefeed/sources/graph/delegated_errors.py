"""What MSAL and Entra say of a person's sign-in, as our errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import (
    DrivefeedError,
    NeedsAttention,
    Part,
    PartDown,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.sources.graph.account import GraphAccount

_SIGN_IN = frozenset(
    {"invalid_grant", "interaction_required", "consent_required", "login_required"}
)
_PASSING = frozenset({"temporarily_unavailable", "server_error", "request_timeout"})
_NO_CONSENT = re.compile(r"AADSTS(65001|65004|90094|90095)\b")
_WRONG_TENANT = re.compile(r"AADSTS(50020|50034|500200|500208|50177|90072|16000)\b")
_UNKNOWN = re.compile(r"AADSTS(700016|90002|900021|900023)\b")
_OBJECT = re.compile(r" object at 0x[0-9a-f]+")


def of_result(result: Mapping[str, Any], account: GraphAccount) -> DrivefeedError:
    """Return the error for a result of MSAL that holds no token."""
    code = str(result.get("error") or "")
    text = said(result)
    where = f"the sign-in of account '{account.name}'"
    if "AADSTS50196" in text:
        # A loop of requests, as Microsoft sees it: nothing a person could do.
        return Throttled(f"Microsoft slowed {where} down: {text}", seconds=300.0)
    if code in _PASSING:
        return Transient(f"Microsoft could not serve {where} just now: {text}")
    if code in _SIGN_IN:
        return NeedsAttention(
            f"Microsoft wants {where} again: {text} Run 'drivefeed account reconnect "
            f"{account.name}'; everything goes on from where it was.",
            reason=Reason.NEEDS_SIGN_IN,
        )
    return NeedsAttention(f"Microsoft refused {where}: {text}", reason=Reason.MISCONFIGURED)


def of_sign_in(result: Mapping[str, Any], account: GraphAccount) -> NeedsAttention:
    """Return the error for a person's attempt to sign in that ended without tokens."""
    code = str(result.get("error") or "")
    text = said(result)
    words, reason = f"Microsoft refused the sign-in: {text}", Reason.NEEDS_SIGN_IN
    if code in {"access_denied", "authorization_declined"} or _NO_CONSENT.search(text):
        words = (
            f"Consent was refused, so nothing was changed: {text} Sign in again and accept, or "
            "have an administrator of the tenant consent to the app."
        )
    elif code in {"expired_token", "code_expired"}:
        words = "The code was not entered in time. Start again, and enter it within 15 minutes."
    elif code == "bad_verification_code":
        words = "Microsoft does not know this code any more. Start again."
    elif _WRONG_TENANT.search(text):
        words = (
            f"Whoever signed in does not belong to tenant '{account.tenant_id}': {text} Sign in "
            "with an account of that tenant."
        )
    elif _UNKNOWN.search(text):
        reason = Reason.MISCONFIGURED
        words = (
            f"Microsoft does not know app '{account.client_id}' in tenant '{account.tenant_id}': "
            f"{text} Check both ids in the app registration."
        )
    elif code in {"invalid_client", "unauthorized_client"}:
        reason = Reason.MISCONFIGURED
        words = (
            f"The app registration does not let people sign in this way: {text} Under "
            "Authentication, add the platform 'Mobile and desktop applications' with "
            "http://localhost, and allow public client flows."
        )
    elif code in {"invalid_request", "invalid_scope", "unsupported_grant_type"}:
        reason = Reason.MISCONFIGURED
    elif "AADSTS70000" in text or "AADSTS70008" in text or "AADSTS54005" in text:
        words = f"This sign-in was used before, or is too old: {text} Start again."
    return NeedsAttention(words, reason=reason)


def of_exception(error: Exception, account: GraphAccount) -> DrivefeedError:
    """Return the error for what MSAL or its HTTP client raised."""
    import requests

    if isinstance(error, DrivefeedError):
        return error
    where = f"The sign-in service of account '{account.name}' at {account.login_url}"
    detail = _OBJECT.sub("", str(error))[:200]
    if isinstance(error, requests.exceptions.SSLError):
        return PartDown(
            f"{where} has a certificate that is not trusted here ({detail}). If it is yours, or "
            "a proxy's, name its authority in the account's ca_file.",
            part=Part.SOURCE,
        )
    if isinstance(error, requests.RequestException | OSError):
        return PartDown(f"{where} could not be reached ({detail}).", part=Part.SOURCE)
    if type(error).__name__ == "MsalServiceError":
        return Transient(
            f"Microsoft could not serve the sign-in of account '{account.name}' just now "
            f"({detail})."
        )
    if isinstance(error, ValueError) and "authority" in str(error).lower():
        return NeedsAttention(
            f"{where} knows no tenant '{account.tenant_id}'. Check the tenant's id, or use "
            "organizations, consumers or common.",
            reason=Reason.MISCONFIGURED,
        )
    return Transient(f"{where} answered what was not understood: {type(error).__name__}: {detail}")


def said(result: Mapping[str, Any]) -> str:
    """Return Entra's error name and its first sentence, which carries the AADSTS code."""
    code = str(result.get("error") or "")
    text = str(result.get("error_description") or "").strip()
    first = text.splitlines()[0][:400] if text else ""
    return ": ".join(part for part in (code, first) if part) or "no reason was given."
