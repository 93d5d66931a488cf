"""What is generated is current, and the check that says so notices when it is not."""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import TYPE_CHECKING

import jsonschema
import pytest

from drivefeed.domain.lifecycle import TRANSITIONS
from drivefeed.ports import Stage
from drivefeed.queue.table import payload_schema, queues_json
from house.project import ROOT

if TYPE_CHECKING:
    from types import ModuleType


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"script_{name}", ROOT / f"scripts/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return script("generate_docs")


def test_documentation_is_what_the_code_says(generator: ModuleType) -> None:
    stale = [path.relative_to(ROOT).as_posix() for path in generator.stale()]
    assert not stale, "run 'make format' and commit the result"


def test_a_changed_table_is_noticed(generator: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(iter(TRANSITIONS))
    fewer = {key: value for key, value in TRANSITIONS.items() if key != first}
    monkeypatch.setattr(generator, "TRANSITIONS", fewer)
    assert [path.name for path in generator.stale()] == ["architecture.md"]


def test_the_board_reads_the_table_of_queues_from_code() -> None:
    written = json.loads((ROOT / "bull-board" / "queues.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(queues_json("drivefeed")))
    assert [queue["name"] for queue in written["queues"]] == [stage.value for stage in Stage]


@pytest.mark.parametrize("stage", Stage)
def test_the_schema_of_each_payload_is_published(stage: Stage) -> None:
    path = ROOT / "docs" / "schemas" / f"{stage}.json"
    published = json.loads(path.read_text(encoding="utf-8"))
    assert published == payload_schema(stage)
    jsonschema.Draft202012Validator.check_schema(published)


def test_no_schema_is_left_over() -> None:
    there = {path.stem for path in (ROOT / "docs" / "schemas").iterdir()}
    assert there == {stage.value for stage in Stage}


def test_locks_are_current_and_a_new_dependency_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = script("lock")
    assert not lock.stale(), "run 'make lock' and commit the result"
    monkeypatch.setitem(lock.LOCKS, "demo", ("local", "sim", "otel"))
    assert lock.stale() == ["demo"]
