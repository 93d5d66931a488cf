"""What the tests of our own rules look at: tracked files, and the code as syntax trees."""

from __future__ import annotations

import ast
import subprocess
from typing import TYPE_CHECKING

import pytest

from house.project import ROOT, SRC, Module

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def modules() -> list[Module]:
    found = []
    for path in sorted(SRC.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Module(path, text, ast.parse(text)))
    assert len(found) > 50
    return found


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    """All files that belong to the project, whether committed yet or not."""
    # The checkout may belong to another user than the one who runs the tests.
    git = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT)]
    listing = [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, check=True, capture_output=True).stdout.decode()
    found = [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]
    assert ROOT / "pyproject.toml" in found
    return found
