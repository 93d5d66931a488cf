"""From what Graph says to what drivefeed does: the one place that knows status codes.

``translate`` is total: every status and code, known or not, gives one of our errors. Codes are
compared without regard to case, at every depth of ``innerError``; messages are shown to people
and never parsed, as Microsoft's error page asks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import httpx
import msgspec

from drivefeed.domain.errors import (
    CursorExpired,
    DrivefeedError,
    InUse,
    NeedsAttention,
    NotFound,
    Part,
    PartDown,
    Permanent,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.unreached import why_unreached
from drivefeed.sources.graph.waits import told_wait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drivefeed.outbound import Outbound


class Scene(StrEnum):
    """What was asked for, in the words of the sentences below."""

    ENUMERATE = "the contents of the drive"
    CHANGES = "the changes of the drive"
    DRIVE = "the drive"
    ITEM = "an item"
    CONTENT = "a file's content"
    HOST = "a file's content from the download host"
    LABELS = "a file's sensitivity labels"
    PERMISSIONS = "a file's permissions"
    SUBSCRIPTION = "word of the drive's changes"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that was not the one asked for.

    Attributes:
        codes: Graph's error codes, lower-cased, outermost first.
        told: seconds to wait, if the answer named any.
        infected: the answer carries SharePoint's malware header.
        claims: the claims challenge of a 401, as Entra expects it back.
    """

    status: int
    codes: tuple[str, ...] = ()
    message: str = ""
    request_id: str = ""
    told: float | None = None
    infected: bool = False
    claims: str | None = None

    @property
    def throttles(self) -> bool:
        """Whether everybody should wait before the next request."""
        return self.status in _THROTTLING or any(code in _THROTTLE_CODES for code in self.codes)

    def sentence(self, scene: Scene) -> str:
        """Say what happened, with everything Microsoft's support will ask for."""
        said = ": ".join(part for part in ("/".join(self.codes), self.message) if part)
        told = f" ({said})" if said else ""
        trace = f" Request id {self.request_id}." if self.request_id else ""
        return f"Microsoft Graph answered {self.status}{told} when asked for {scene}.{trace}"


_THROTTLING = frozenset({429, 503, 509})
_THROTTLE_CODES = frozenset(
    {"activitylimitreached", "toomanyrequests", "throttledrequest", "applicationthrottled"}
)
_RESYNC = ("resync", "syncstate")
DELTA_SCENES = frozenset({Scene.ENUMERATE, Scene.CHANGES})
_BYTES = frozenset({Scene.CONTENT, Scene.HOST})
_METADATA = DELTA_SCENES | {Scene.DRIVE, Scene.ITEM, Scene.LABELS}
_GUESSED_WAIT = 30.0


def refusal_of(response: httpx.Response, body: bytes, *, now: int) -> Refusal:
    """Read an answer's status, headers and (any kind of) body.

    Args:
        response: the answer.
        body: its first bytes; may be HTML, cut short or empty.
        now: milliseconds since the epoch.
    """
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    error = document.get("error") if isinstance(document, dict) else None
    codes = tuple(dict.fromkeys(code.lower() for code in _codes(error)))
    message = error.get("message") if isinstance(error, dict) else None
    challenge = response.headers.get("www-authenticate", "")
    claims = re.search(r'claims="([^"]+)"', challenge)
    return Refusal(
        status=response.status_code,
        codes=codes,
        message=_clean(message) if isinstance(message, str) else "",
        request_id=response.headers.get("request-id", "")
        or response.headers.get("sprequestguid", ""),
        told=told_wait(response.headers, now=now),
        infected="x-virus-infected" in response.headers,
        claims=claims[1] if claims else None,
    )


def _codes(error: Any) -> Iterator[str]:
    """Yield the codes of an error object from the outside in."""
    for _ in range(20):
        if not isinstance(error, dict):
            return
        code = error.get("code")
        if isinstance(code, str) and code:
            yield code[:80]
        error = error.get("innerError") or error.get("innererror")


def _clean(message: str) -> str:
    """Shorten a message and take the queries off its URLs, which may open files."""
    return re.sub(r"(https?://[^\s?]+)\?\S+", r"\1?…", message)[:300].strip().rstrip(".")


def translate(refusal: Refusal, scene: Scene) -> DrivefeedError:
    """Return the error that fits an answer.

    Answers 400 and 404 about a drive's contents do not say whether the item, the link or the
    whole drive is the trouble. The caller asks for the drive first (:attr:`Scene.DRIVE`); here
    the drive is taken to have answered.
    """
    text = refusal.sentence(scene)
    special = _by_code(refusal, scene, text)
    if special is not None:
        return special
    if refusal.throttles:
        return Throttled(text, seconds=refusal.told or _GUESSED_WAIT)
    by_status = _BY_STATUS.get(refusal.status)
    found = by_status(refusal, scene, text) if by_status else None
    return found or Transient(text)


def _by_code(refusal: Refusal, scene: Scene, text: str) -> DrivefeedError | None:
    """Errors whose code says more than their status."""
    codes = refusal.codes
    if scene in DELTA_SCENES and any(code.startswith(_RESYNC) for code in codes):
        return CursorExpired(text)
    if "cannotsnapshottree" in codes:
        return Transient(text)
    if scene in _BYTES and (refusal.infected or "malwaredetected" in codes):
        return Permanent(text, reason=Reason.MALWARE)
    return None


def _not_understood(_: Refusal, scene: Scene, text: str) -> DrivefeedError | None:
    if scene is Scene.DRIVE:
        return NeedsAttention(text, reason=Reason.DRIVE_GONE)
    if scene is Scene.CHANGES:
        return CursorExpired(text)
    if scene is Scene.ENUMERATE:
        return NeedsAttention(text, reason=Reason.SOURCE_MISBEHAVES)
    return None


def _not_found(refusal: Refusal, scene: Scene, text: str) -> DrivefeedError | None:
    if scene in {Scene.ITEM, Scene.CONTENT, Scene.SUBSCRIPTION}:
        return NotFound(text)
    return _not_understood(refusal, scene, text)


def _not_signed_in(refusal: Refusal, scene: Scene, text: str) -> DrivefeedError | None:
    if scene is Scene.HOST:
        return None
    if refusal.claims:
        # The fresh token was refused as well: the tenant wants more than we can bring.
        return NeedsAttention(text, reason=Reason.CONDITIONAL_ACCESS)
    return NeedsAttention(text, reason=Reason.NEEDS_SIGN_IN)


def _forbidden(_: Refusal, scene: Scene, text: str) -> DrivefeedError | None:
    if scene in _METADATA:
        return NeedsAttention(text, reason=Reason.ACCESS_DENIED)
    if scene is Scene.CONTENT:
        return Permanent(text, reason=Reason.DOWNLOAD_FORBIDDEN)
    return None


def _gone(refusal: Refusal, scene: Scene, text: str) -> DrivefeedError | None:
    if scene in DELTA_SCENES:
        return CursorExpired(text)
    return _not_found(refusal, scene, text)


def _locked(refusal: Refusal, scene: Scene, text: str) -> DrivefeedError | None:
    whole_drive = scene in DELTA_SCENES or scene is Scene.DRIVE
    if whole_drive or (scene is Scene.ITEM and "notallowed" in refusal.codes):
        # An administrator locked or archived the site; only they can open it again.
        words = f"The site is locked or archived. {text}"
        return NeedsAttention(words, reason=Reason.SITE_LOCKED)
    return InUse(text) if scene in _BYTES else None


def _not_offered(_: Refusal, scene: Scene, text: str) -> DrivefeedError | None:
    if scene in DELTA_SCENES:
        return NeedsAttention(text, reason=Reason.SOURCE_MISBEHAVES)
    return None


_BY_STATUS = {
    400: _not_understood,
    401: _not_signed_in,
    403: _forbidden,
    404: _not_found,
    410: _gone,
    423: _locked,
    501: _not_offered,
}


def broken(
    error: Exception, scene: Scene, *, url: str = "", outbound: Outbound | None = None
) -> DrivefeedError:
    """Return the error that fits a request without an answer.

    Args:
        url: what was asked, and ``outbound`` the way out, where the caller knows them.

    Only connections that were never made count as *down*; one that broke is tried again. The
    exception's own text is left out where it could hold a download URL.
    """
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        detail = f" ({_clean(str(error))})" if str(error) else ""
        if url and outbound is not None:
            detail = f": {why_unreached(error, url, outbound)}"
        return PartDown(
            f"Microsoft Graph could not be reached for {scene}{detail}.", part=Part.SOURCE
        )
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return NeedsAttention(
            f"The URL for {scene} is not one that can be fetched; check the Graph URL.",
            reason=Reason.MISCONFIGURED,
        )
    return Transient(
        f"The connection to Microsoft Graph broke ({type(error).__name__}) while asking for "
        f"{scene}."
    )
