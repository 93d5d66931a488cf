"""The contracts of import-linter hold, and break when they should."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from house.project import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the code and of the contracts, to break."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(checkout: Path) -> subprocess.CompletedProcess[str]:
    # The path comes first, so that the copy is looked at and not an installed drivefeed.
    code = (
        "import sys; sys.path.insert(0, 'src'); "
        "from importlinter.cli import lint_imports_command; lint_imports_command()"
    )
    return subprocess.run(
        [sys.executable, "-c", code, "--no-logo", "--no-cache"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_arrows_hold(checkout: Path) -> None:
    done = lint(checkout)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("drivefeed/domain/retry.py", "import drivefeed.ports"),
        ("drivefeed/ports/queue.py", "import drivefeed.catalog.engine"),
        ("drivefeed/catalog/files.py", "import drivefeed.stores.directory"),
        ("drivefeed/stores/keys.py", "import drivefeed.stages.runner"),
        ("drivefeed/stages/poll.py", "import drivefeed.services.relay"),
        ("drivefeed/stages/submit.py", "import sqlalchemy"),
        ("drivefeed/services/relay.py", "import bullmq"),
        ("drivefeed/stages/transfer.py", "import msgraph"),
        ("drivefeed/stages/submit.py", "import drivefeed.settings"),
        ("drivefeed/sample/folder.py", "import drivefeed.domain.model"),
        ("drivefeed/sources/graph/source.py", "import graphsim.app"),
        ("graphsim/app.py", "import drivefeed.domain.quickxor"),
        ("drivefeed/new_room.py", ""),
    ],
)
def test_an_arrow_the_wrong_way_is_found(checkout: Path, file: str, line: str) -> None:
    with (checkout / "src" / file).open("a", encoding="utf-8") as module:
        module.write(f"\n{line}\n")
    done = lint(checkout)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout
