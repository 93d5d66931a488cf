"""The list of reasons is closed: code, words and documentation agree."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from drivefeed.domain.errors import Part
from drivefeed.domain.explanations import EXPLANATIONS, Kind, explain
from drivefeed.domain.lifecycle import WITHDRAWAL_REASONS
from drivefeed.domain.reasons import Reason
from house.project import ROOT

if TYPE_CHECKING:
    from house.project import Module


def test_every_reason_is_explained_with_a_remedy() -> None:
    assert set(EXPLANATIONS) == set(Reason)
    for reason in Reason:
        words = explain(reason)
        assert words.meaning.endswith("."), reason
        assert words.remedy.endswith("."), reason


def test_codes_are_snake_case_and_say_the_name() -> None:
    for reason in Reason:
        assert reason.value == reason.name.lower()
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", reason.value)


def test_code_uses_only_reasons_of_the_list(modules: list[Module]) -> None:
    known = set(Reason.__members__) | set(dir(Reason))
    unknown = [
        f"{module.name}:{node.lineno} Reason.{node.attr}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Reason"
        and node.attr not in known
    ]
    assert not unknown


def test_no_reason_is_passed_as_a_bare_text(modules: list[Module]) -> None:
    spelled = [
        f"{module.name}:{node.lineno}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.keyword)
        and node.arg in {"reason", "hold", "attention"}
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and module.name.startswith("drivefeed/")
    ]
    assert not spelled


def test_a_version_is_withdrawn_only_for_reasons_of_that_kind() -> None:
    assert {r for r in Reason if explain(r).kind is Kind.WITHDRAWN} == WITHDRAWAL_REASONS


def test_every_part_that_can_be_down_has_a_hold() -> None:
    from drivefeed.stages.breaker import HOLDS

    assert set(HOLDS) == set(Part)
    assert {explain(hold).kind for hold in HOLDS.values()} == {Kind.HOLD}


def test_the_page_of_reasons_has_each_of_them() -> None:
    page = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")
    missing = [reason for reason in Reason if f"| `{reason}` |" not in page]
    assert not missing


def commands_named_in(text: str) -> set[str]:
    return set(re.findall(r"'drivefeed ([a-z-]+)", text))


def test_remedies_name_commands_that_exist() -> None:
    import typer

    from drivefeed.cli.app import app

    command = typer.main.get_command(app)
    named = set().union(*(commands_named_in(w.remedy) for w in EXPLANATIONS.values()))
    assert named
    assert named <= set(getattr(command, "commands", {}))
