"""Every commit and every effect has a name of its own in the table of checkpoints."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING

from drivefeed.domain.checkpoints import COMMITS, EFFECTS, checkpoints
from drivefeed.domain.lifecycle import Event
from drivefeed.ports import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from house.project import Module

FILLED_IN = {
    "event": [event.value for event in Event if event is not Event.WANTED_AGAIN],
    "kind": ["events", "heartbeats", "index_jobs", "sessions"],
    "self.stage": [Stage.DISCOVER.value, Stage.ADMIT.value],
}
"""What stands for a part of a name. Wanting again is no event of a stage: a page commits it."""


def names_of(argument: ast.expr) -> list[str]:
    if isinstance(argument, ast.Constant):
        return [str(argument.value)]
    assert isinstance(argument, ast.JoinedStr), ast.unparse(argument)
    names = [""]
    for part in argument.values:
        filled = (
            [str(part.value)]
            if isinstance(part, ast.Constant)
            else FILLED_IN[ast.unparse(part.value)]
            if isinstance(part, ast.FormattedValue)
            else []
        )
        names = [name + one for name in names for one in filled]
    return names


def calls(modules: list[Module]) -> Iterator[tuple[Module, ast.Call]]:
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call):
                yield module, node


def is_commit(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "write":
        return False
    receiver = ast.unparse(call.func.value)
    return receiver.removeprefix("self.").lstrip("_") == "catalog"


def test_every_commit_has_a_name_of_its_own(modules: list[Module]) -> None:
    found: Counter[str] = Counter()
    for module, call in calls(modules):
        if is_commit(call):
            assert call.args, f"{module.name}:{call.lineno}: a commit without a name"
            found.update(names_of(call.args[0]))
    assert [name for name, times in found.items() if times > 1] == []
    assert set(found) == set(COMMITS)


def test_every_effect_of_the_table_is_passed_and_no_other(modules: list[Module]) -> None:
    found: set[str] = set()
    for module, call in calls(modules):
        name = ast.unparse(call.func)
        if name.split(".")[-1].lstrip("_") == "passing":
            argument = call.args[-1]
            if not isinstance(argument, ast.Name):
                found.update(names_of(argument))
        is_bare = name.split(".")[-1].lstrip("_") == "checkpoint"
        if is_bare and module.name not in MAY_NAME_PLACES:
            raise AssertionError(f"{module.name}:{call.lineno}: a checkpoint outside of the table")
    assert found == set(EFFECTS)


MAY_NAME_PLACES = {"drivefeed/catalog/engine.py", "drivefeed/domain/checkpoints.py"}


def test_every_checkpoint_says_in_a_sentence_what_is_true_there() -> None:
    for name, sentence in checkpoints().items():
        assert sentence.endswith("."), name
    assert list(COMMITS) == sorted(COMMITS)
    assert list(EFFECTS) == sorted(EFFECTS)
    assert len(checkpoints()) == 2 * (len(COMMITS) + len(EFFECTS))
