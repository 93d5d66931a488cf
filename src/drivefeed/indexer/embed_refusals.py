"""What an embedding service refuses, translated into our errors at the door."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from drivefeed.domain.errors import (
    DrivefeedError,
    NeedsAttention,
    Part,
    PartDown,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx

    from drivefeed.indexer.embed_models import Model
    from drivefeed.indexer.embed_naming import Naming
    from drivefeed.indexer.embed_protocols import WireProtocol

_DEFAULT_WAIT_SECONDS: Final = 5.0
_LONGEST_WAIT_SECONDS: Final = 3600.0
_MOST_WORDS: Final = 300
_QUOTED: Final = 40

_TOO_LONG = frozenset({400, 413, 422})
_WRONG_KEY = frozenset({401, 403})
_NO_SUCH: Final = 404
_TOO_MANY: Final = 429
_SERVER_FAILS: Final = 500


class TooLongError(Transient):
    """A text has more tokens than the model takes."""


def refusal(
    answer: httpx.Response,
    texts: Sequence[str],
    protocol: WireProtocol,
    model: Model,
    *,
    where: str,
    naming: Naming,
) -> DrivefeedError:
    """Return the error for an answer that is no success.

    Args:
        answer: what the service answered.
        texts: what it was sent; never repeated in a sentence.
        protocol: knows the key, which is never repeated either.
        model: what was asked for.
        where: the address, as it may be shown.
        naming: calls what has to be corrected as it was given.
    """
    status, words = answer.status_code, _words_of(answer, texts, protocol)
    if status == _TOO_MANY and "insufficient_quota" not in words:
        seconds = _seconds(answer.headers.get("retry-after"))
        return Throttled(
            f"The embedding service at {where} asked to wait {seconds:.0f} seconds.",
            seconds=seconds,
        )
    if status >= _SERVER_FAILS:
        return PartDown(
            f"The embedding service at {where} failed (HTTP {status}): {words}", part=Part.INDEX
        )
    if status in _TOO_LONG and _says_too_long(words):
        return TooLongError(f"A text is too long for the model '{model.name}' at {where}: {words}")
    if remedy := _remedy(status, protocol, model, naming):
        return NeedsAttention(
            f"The embedding service at {where} refuses (HTTP {status}): {words} {remedy}",
            reason=Reason.MISCONFIGURED,
        )
    return Transient(f"The embedding service at {where} refused (HTTP {status}): {words}")


def _remedy(status: int, protocol: WireProtocol, model: Model, naming: Naming) -> str:
    if status == _TOO_MANY:
        return "Raise the limit or the budget of the account."
    if status in _WRONG_KEY:
        return f"Check {naming('api_key')}."
    if status == _NO_SUCH:
        return f"Check {naming('base_url', 'model')}{protocol.remedy(model)}."
    return ""


def _words_of(answer: httpx.Response, texts: Sequence[str], protocol: WireProtocol) -> str:
    """Return what the service says: short, without secrets, and without our texts."""
    try:
        said = answer.json()
    except ValueError:
        said = answer.text
    if isinstance(said, dict):
        said = said.get("error", said)
    code = ""
    if isinstance(said, dict):
        code = f" ({said['code']})" if said.get("code") else ""
        said = said.get("message")
    # Some services answer with what they were sent, and a document is no matter for a log.
    if not isinstance(said, str) or any(
        text[:_QUOTED].strip() and text[:_QUOTED] in said for text in texts
    ):
        said = "it gives no reason"
    words = " ".join((said[:_MOST_WORDS] + code).split())
    words = redact(protocol.without_secrets(words))
    return words if words.endswith((".", "!", "?")) else f"{words}."


def _says_too_long(words: str) -> bool:
    said = words.lower()
    signs = ("context length", "too long", "maximum context", "too many tokens")
    return any(sign in said for sign in signs)


def _seconds(header: str | None) -> float:
    try:
        seconds = float(header or "")
    except ValueError:
        return _DEFAULT_WAIT_SECONDS
    if not math.isfinite(seconds):
        return _DEFAULT_WAIT_SECONDS
    return min(max(seconds, 0.1), _LONGEST_WAIT_SECONDS)
