from __future__ import annotations

import json

import jsonschema
import pytest

from drivefeed.ports import Stage
from drivefeed.queue import QUEUES, payload_schema, queues_json
from drivefeed.queue.payload import check_payload

IMPORT = {"org_id": "o", "document_id": "d", "import_id": "i", "round": 1, "number": 7}
GOOD = {
    Stage.DISCOVER: {"org_id": "o", "drive_id": "b!x_-1", "number": 1},
    Stage.ADMIT: {"org_id": "o", "connection_id": "c", "number": 1},
    Stage.INDEX: {**IMPORT, "job_id": "j"},
}


def good(stage: Stage) -> dict[str, object]:
    return {"schema": 1, **GOOD.get(stage, IMPORT)}


def test_every_stage_has_one_queue() -> None:
    assert set(QUEUES) == set(Stage)
    assert all(3 <= spec.attempts <= 5 and spec.concurrency >= 1 for spec in QUEUES.values())


@pytest.mark.parametrize("stage", Stage)
def test_backoff_doubles_is_jittered_and_bounded(stage: Stage) -> None:
    spec = QUEUES[stage]
    assert spec.backoff(1, 0.0) == spec.backoff_seconds * 1000
    assert spec.backoff(2, 0.5) == 2 * spec.backoff(1, 0.5)
    assert spec.backoff(1, 0.9) < spec.backoff(1, 0.1)
    assert spec.backoff(1000, 0.0) == spec.backoff_max * 1000
    assert all(type(spec.backoff(n, 0.37)) is int for n in range(-1, 70))


def test_the_table_can_be_written_for_other_programs() -> None:
    written = json.loads(json.dumps(queues_json("p")))
    assert (written["schema"], written["prefix"]) == (1, "p")
    assert [q["name"] for q in written["queues"]] == [s.value for s in Stage]
    assert set(written["queues"][0]) == {
        "name",
        "purpose",
        "concurrency",
        "attempts",
        "backoff",
        "keep_completed",
        "keep_failed",
    }


@pytest.mark.parametrize("stage", Stage)
def test_schema_and_check_agree(stage: Stage) -> None:
    schema = payload_schema(stage)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    payload = good(stage)
    validator.validate(payload)
    check_payload(stage, payload)
    worse: list[dict[str, object]] = [
        {**payload, "name": "plan.docx"},
        {**payload, "org_id": "https://host/?token=x"},
        {**payload, "org_id": "two words"},
        {**payload, "org_id": "x" * 129},
        {**payload, "org_id": "o\n"},
        {**payload, "org_id": 5},
        {**payload, "number": "5"},
        {**payload, "number": -1},
        {**payload, "number": 1.5},
        {**payload, "number": True},
        {**payload, "schema": 2},
        {key: value for key, value in payload.items() if key != "org_id"},
    ]
    for bad in worse:
        if bad["number"] is not True and bad.get("org_id") != "o\n":
            # JSON Schema calls True no integer, but Python's re lets $ match before a newline.
            assert not validator.is_valid(bad), bad
        with pytest.raises(ValueError, match=f"queue {stage.value}"):
            check_payload(stage, bad)
