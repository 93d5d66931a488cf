"""Lines of an import's passport as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drivefeed.domain.lifecycle import Event
    from drivefeed.domain.model import Import
    from drivefeed.domain.reasons import Reason


def event_row(
    one: Import,
    event: Event | str,
    *,
    now: int,
    reason: Reason | None = None,
    detail: str = "",
    pages: int | None = None,
) -> dict[str, Any]:
    """Return a line as a row; see :func:`drivefeed.catalog.documents.record_event`."""
    return {
        "import_id": one.import_id,
        "round": one.round,
        "at": now,
        "event": str(event),
        "state": one.state,
        "reason": reason,
        "detail": detail,
        "pages": pages,
    }
