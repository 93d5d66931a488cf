"""What is due for a subject, as a row of the outbox; see :mod:`drivefeed.catalog.reminders`."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, TypedDict

from drivefeed.catalog.dialect import insert_for
from drivefeed.catalog.tables import reminders

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Unpack


class Reminder(TypedDict):
    """That a stage is due for a subject at an instant, with what its deliveries tell."""

    subject_id: str
    org_id: str
    stage: str
    due_at: int
    payload: Mapping[str, str | int]


def due_row(*, lane: int, **due: Unpack[Reminder]) -> dict[str, Any]:
    """Return the row that says so, for :func:`put_statement`."""
    return {**due, "lane": lane, "payload": json.dumps(dict(due["payload"]))}


@cache
def put_statement(dialect: str) -> Any:
    """Return what writes a row of :func:`due_row`, or many."""
    statement = insert_for(dialect, reminders)
    anew = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=["subject_id"],
        set_={
            "stage": anew.stage,
            "number": reminders.c.number + 1,
            "due_at": anew.due_at,
            "sent_at": None,
            "remind_at": None,
            "starts": 0,
            "lane": anew.lane,
            "payload": anew.payload,
        },
    )
