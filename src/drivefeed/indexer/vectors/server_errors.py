"""What qdrant-client raises, translated into our errors at the door."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

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
    from collections.abc import AsyncIterator

_REFUSES_KEY: Final = frozenset({401, 403})
_SERVER_FAILS: Final = 500


@asynccontextmanager
async def translated(doing: str, where: str) -> AsyncIterator[None]:
    """Translate the client's errors.

    Args:
        doing: what was asked, to follow "when asked to" in a sentence.
        where: how to name the collection in a sentence.

    Raises:
        PartDown: the server does not answer or fails.
        Throttled: it asks to wait.
        NeedsAttention: it refuses our key.
        Transient: it refused the request; also where the collection was deleted meanwhile.
    """
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

    try:
        yield
    except ResourceExhaustedResponse as error:
        raise Throttled(
            f"Qdrant asked to wait when asked to {doing} in {where}.",
            seconds=float(error.retry_after_s),
        ) from error
    except ResponseHandlingException as error:
        raise PartDown(
            f"Qdrant did not answer when asked to {doing} in {where}: {error.source}",
            part=Part.INDEX,
        ) from error
    except UnexpectedResponse as error:
        raise _refusal(doing, where, error) from error


def _refusal(doing: str, where: str, error: Any) -> DrivefeedError:
    status = error.status_code or 0
    if status in _REFUSES_KEY:
        return NeedsAttention(
            f"Qdrant refuses our API key for {where}. Check the key in the settings.",
            reason=Reason.MISCONFIGURED,
        )
    if status >= _SERVER_FAILS:
        return PartDown(
            f"Qdrant failed when asked to {doing} in {where} (HTTP {status}): {error}",
            part=Part.INDEX,
        )
    return Transient(
        f"Qdrant refused when asked to {doing} in {where} (HTTP {status}): {error}",
    )
