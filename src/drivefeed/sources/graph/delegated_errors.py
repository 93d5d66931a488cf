"""What MSAL and Entra say of a person's sign-in, as our errors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import (
    DrivefeedError,
    NeedsAttention,
    Part,
    PartDown,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.refused import EntraRefusal, sign_in_error
from drivefeed.sources.graph.unreached import why_unreached

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.sources.graph.account import GraphAccount

_NO_CONSENT = re.compile(r"AADSTS(65001|65004|90094|90095)\b")
_WRONG_TENANT = re.compile(r"AADSTS(50020|50034|500200|500208|50177|90072|16000)\b")
_USED = re.compile(r"AADSTS(70000|70008|54005)\b")
_UNKNOWN = re.compile(r"AADSTS(700016|90002|900021|900023)\b")
_OBJECT = re.compile(r" object at 0x[0-9a-f]+")


def of_result(
    result: Mapping[str, Any], account: GraphAccount, *, status: int, told: float | None
) -> DrivefeedError:
    """Return the error for a result of MSAL that holds no token.

    Args:
        status: of the answer that MSAL read.
        told: seconds to wait, if the answer named any.
    """
    code, text = _parts(result)
    ours = sign_in_error(EntraRefusal(error=code, text=text, status=status, told=told), account)
    if isinstance(ours, NeedsAttention) and ours.reason is Reason.NEEDS_SIGN_IN:
        words = f"{ours} Run 'drivefeed account reconnect {account.name}'."
        return NeedsAttention(words, reason=ours.reason)
    return ours


def of_sign_in(result: Mapping[str, Any], account: GraphAccount) -> NeedsAttention:
    """Return the error for a person's attempt to sign in that ended without tokens."""
    code, text = _parts(result)
    words, reason = "Microsoft refused the sign-in.", Reason.NEEDS_SIGN_IN
    if code in {"access_denied", "authorization_declined"} or _NO_CONSENT.search(text):
        reason = Reason.CONSENT_MISSING
        words = (
            "Consent was refused, so nothing was changed. Sign in again and accept, or have an "
            "administrator of the tenant consent to the app."
        )
    elif code in {"expired_token", "code_expired"}:
        words = "The code was not entered in time. Start again, and enter it before it ends."
    elif code == "bad_verification_code":
        words = "Microsoft does not know this code any more. Start again."
    elif _WRONG_TENANT.search(text):
        reason = Reason.WRONG_USER
        words = (
            f"Whoever signed in does not belong to tenant '{account.tenant_id}'. Sign in with an "
            "account of that tenant."
        )
    elif _UNKNOWN.search(text):
        reason = Reason.APP_UNKNOWN
        words = (
            f"Microsoft does not know app '{account.client_id}' in tenant '{account.tenant_id}'. "
            "Check both ids in the app registration."
        )
    elif code in {"invalid_client", "unauthorized_client"}:
        reason = Reason.PERSON_NOT_ADMITTED
        words = (
            "The app registration does not let people sign in this way. Under Authentication, add "
            "the platform 'Mobile and desktop applications' with http://localhost, and allow "
            "public client flows."
        )
    elif code in {"invalid_request", "invalid_scope", "unsupported_grant_type"}:
        reason = Reason.SIGN_IN_REFUSED
    elif _USED.search(text):
        words = "This sign-in was used before, or is too old. Start again."
    told = ": ".join(part for part in (code, text) if part)
    return NeedsAttention(f"{words} Microsoft said: {told}" if text else words, reason=reason)


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
        why = why_unreached(error, account.login_url, account.outbound)
        return PartDown(
            f"The sign-in service of account '{account.name}' could not be reached: {why}.",
            part=Part.SOURCE,
        )
    if type(error).__name__ == "MsalServiceError":
        return Transient(
            f"Microsoft could not serve the sign-in of account '{account.name}' just now "
            f"({detail})."
        )
    if isinstance(error, ValueError) and "authority" in str(error).lower():
        return NeedsAttention(
            f"{where} knows no tenant '{account.tenant_id}'. Check the tenant's id, or use "
            "organizations, consumers or common.",
            reason=Reason.TENANT_UNKNOWN,
        )
    return Transient(f"{where} answered what was not understood: {type(error).__name__}: {detail}")


def _parts(result: Mapping[str, Any]) -> tuple[str, str]:
    lines = str(result.get("error_description") or "").strip().splitlines()
    return str(result.get("error") or ""), lines[0][:400] if lines else ""
