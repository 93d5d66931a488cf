"""What a job may carry: ids and a schema version.

Never content, names, tokens or URLs: everybody who can read Redis or the board can read a
payload, and it stays there for days. Workers believe the catalog and not the payload.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from drivefeed.ports import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA = 1
"""The version of the payloads' shape, carried by each of them."""

_ID = r"^[A-Za-z0-9][A-Za-z0-9!._~-]{0,127}$"
_JOB_ID = r"^[a-z]+-[A-Za-z0-9!._~-]{1,160}-[0-9]{1,15}$"
_is_id = re.compile(_ID).fullmatch
_is_job_id = re.compile(_JOB_ID).fullmatch

_IMPORT = ("org_id", "document_id", "import_id", "round", "number")
_KEYS: dict[Stage, tuple[str, ...]] = {
    Stage.DISCOVER: ("org_id", "drive_id", "number"),
    Stage.ADMIT: ("org_id", "connection_id", "number"),
    Stage.TRANSFER: _IMPORT,
    Stage.SUBMIT: _IMPORT,
    Stage.POLL: _IMPORT,
    Stage.PUBLISH: _IMPORT,
    Stage.WITHDRAW: _IMPORT,
    Stage.INDEX: ("org_id", "document_id", "import_id", "round", "job_id", "number"),
}
_KEY_SETS = {stage: frozenset(("schema", *keys)) for stage, keys in _KEYS.items()}
_NUMBERS = {
    "round": "How often the import was admitted: 1, and more after a return.",
    "number": "The number of the reminder; a job with an older number does nothing.",
}


def schema(stage: Stage) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) that payloads of ``stage`` obey."""
    properties: dict[str, Any] = {"schema": {"const": SCHEMA}}
    for key in _KEYS[stage]:
        if key in _NUMBERS:
            properties[key] = {"type": "integer", "minimum": 0, "description": _NUMBERS[key]}
        else:
            properties[key] = {"type": "string", "pattern": _ID}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:drivefeed:job:{stage.value}:{SCHEMA}",
        "title": f"Payload of a job of the queue {stage.value}",
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def check_payload(stage: Stage, payload: Mapping[str, Any]) -> None:
    """Check a payload by its keys and the form of its values; cheap enough for each job.

    Raises:
        ValueError: it is not a payload of this stage. Values are not repeated in the message.
    """
    if payload.keys() != _KEY_SETS[stage]:
        wrong = sorted(map(str, payload.keys() ^ _KEY_SETS[stage]))
        raise ValueError(
            f"A job of the queue {stage.value} must carry exactly its ids; missing or not "
            f"allowed: {', '.join(wrong)}."
        )
    if payload["schema"] != SCHEMA:
        raise ValueError(
            f"A job of the queue {stage.value} has a payload of another schema version than "
            f"{SCHEMA}."
        )
    for key, value in payload.items():
        if key == "schema":
            continue
        if key in _NUMBERS:
            right = type(value) is int and value >= 0
        else:
            right = type(value) is str and _is_id(value) is not None
        if not right:
            raise ValueError(
                f"The value of {key} in a job of the queue {stage.value} is not an id; a payload "
                "carries ids and numbers only."
            )


def check_job_id(stage: Stage, job_id: str) -> None:
    """Check that a job id has the form ``stage-subject-number``.

    Node's BullMQ refuses ids that contain a colon and ids that are whole numbers.

    Raises:
        ValueError: the id has another form.
    """
    if _is_job_id(job_id) is None or not job_id.startswith(f"{stage.value}-"):
        raise ValueError(
            f"The job id {job_id!r} does not have the form {stage.value}-subject-number."
        )
