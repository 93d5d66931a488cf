"""Rules for the code itself that no linter knows."""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from house.project import Module

LONGEST_FILE = 300
LONGER_FOR_A_REASON = {
    "drivefeed/catalog/migrations/versions/0001_initial.py": "written by a tool, never changed",
    "drivefeed/catalog/tables.py": "the schema, one page to look at",
}
EMPTY_WORDS = {"manager", "helper", "util", "utils", "handler", "processor", "data", "info"}
NAMES_GIVEN_BY_OTHERS = {
    "data_received": "asyncio calls it on its protocols",
    "data": "the target of an XML parser has a method of this name",
    "FileSystemInfo": "Microsoft Graph calls this facet so",
    "_data_for": "the data folder of a demo",
    "proxy_manager_for": "requests calls it on its adapters",
    "make_data_dir": "the folder is called data_dir, as in most servers",
}
CALLS_FOR_PORTS = {
    "uuid4": "Ids.new()",
    "uuid1": "Ids.new()",
    "time.time": "Clock.now()",
    "time.time_ns": "Clock.now()",
    "datetime.now": "Clock.now()",
    "datetime.utcnow": "Clock.now()",
    "datetime.today": "Clock.now()",
    "date.today": "Clock.now()",
    "random.random": "Ids.fraction()",
    "os.urandom": "Ids.new()",
}
MAY_ASK_THE_SYSTEM = {
    "drivefeed/system.py": "implements the Clock and Ids ports",
    "drivefeed/secrets/sealing.py": "keys and nonces that could be replayed would be no secrets",
}


def test_no_file_is_longer_than_one_noun_needs(modules: list[Module]) -> None:
    lengths = {module.name: len(module.text.splitlines()) for module in modules}
    too_long = {
        name: lines
        for name, lines in lengths.items()
        if lines > LONGEST_FILE and name not in LONGER_FOR_A_REASON
    }
    assert not too_long, "look for the second noun in these files and split them"


def test_the_exceptions_for_long_files_are_still_needed(modules: list[Module]) -> None:
    long = {m.name for m in modules if len(m.text.splitlines()) > LONGEST_FILE}
    assert set(LONGER_FOR_A_REASON) <= long


def words_of(name: str) -> set[str]:
    """Split snake_case and CamelCase into lower-case words."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return {word.lower() for word in spaced.split("_")}


def test_names_say_what_a_thing_is(modules: list[Module]) -> None:
    found = []
    for module in modules:
        defined = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        names = [n.name for n in ast.walk(module.tree) if isinstance(n, defined)]
        names.append(module.path.stem)
        found += [
            f"{module.name}: {name}"
            for name in names
            if words_of(name) & EMPTY_WORDS and name not in NAMES_GIVEN_BY_OTHERS
        ]
    assert not found, "manager, helper, util, handler, processor, data and info say nothing"


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def asks_the_system(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute | ast.Name):
            continue
        said = dotted(node)
        for call, port in CALLS_FOR_PORTS.items():
            if said == call or said.endswith(f".{call}"):
                yield node.lineno, f"{said}: use {port}"


def test_time_and_chance_come_from_the_ports(modules: list[Module]) -> None:
    found = [
        f"{module.name}:{line} {what}"
        for module in modules
        if module.name.startswith("drivefeed/") and module.name not in MAY_ASK_THE_SYSTEM
        for line, what in asks_the_system(module.tree)
    ]
    assert not found


@pytest.mark.parametrize(
    "line", ["import time; time.time()", "import uuid; uuid.uuid4()", "datetime.datetime.now(UTC)"]
)
def test_the_search_for_such_calls_finds_them(line: str) -> None:
    assert list(asks_the_system(ast.parse(line)))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def test_the_domain_needs_the_standard_library_only(modules: list[Module]) -> None:
    found = [
        f"{module.name} imports {name}"
        for module in modules
        if module.name.startswith("drivefeed/domain/")
        for name in imported(module.tree)
        if name.split(".")[0] not in sys.stdlib_module_names
        and not name.startswith("drivefeed.domain")
    ]
    assert not found


def test_the_domain_does_no_io(modules: list[Module]) -> None:
    doors = {"os", "io", "pathlib", "socket", "subprocess", "asyncio", "threading", "sqlite3"}
    found = [
        f"{module.name} imports {name}"
        for module in modules
        if module.name.startswith("drivefeed/domain/")
        for name in imported(module.tree)
        if name.split(".")[0] in doors
    ]
    assert not found


def test_every_exception_to_a_lint_rule_names_its_rule(modules: list[Module]) -> None:
    bare = re.compile(r"#\s*(noqa|type:\s*ignore)\s*($|[^:\[\s])", re.IGNORECASE)
    found = [
        f"{module.name}:{number}"
        for module in modules
        for number, line in enumerate(module.text.splitlines(), 1)
        if bare.search(line)
    ]
    assert not found
