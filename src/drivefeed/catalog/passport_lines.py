"""Lines of an import's passport as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from typing import Unpack

    from drivefeed.domain.lifecycle import Event
    from drivefeed.domain.model import Import
    from drivefeed.domain.reasons import Reason


class Told(TypedDict, total=False):
    """What a line may tell besides: why, in words, and what the backend counted as it settled."""

    reason: Reason | None
    detail: str
    pages: int | None


def event_row(one: Import, event: Event | str, *, now: int, **told: Unpack[Told]) -> dict[str, Any]:
    """Return a line as a row; see :func:`drivefeed.catalog.documents.record_event`."""
    return {
        "import_id": one.import_id,
        "round": one.round,
        "at": now,
        "event": str(event),
        "state": one.state,
        "reason": told.get("reason"),
        "detail": told.get("detail", ""),
        "pages": told.get("pages"),
    }
