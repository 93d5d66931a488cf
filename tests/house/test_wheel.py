"""The built wheel installs with pip alone and runs from an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from typing import TYPE_CHECKING

import pytest

from house.project import ROOT, SRC

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow


def call(command: Sequence[str | Path], cwd: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_"))}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT]
    call(command, cwd=out)
    (found,) = out.glob("drivefeed-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment that has the wheel and nothing else of ours; returns its bin folder.

    Fetching all dependencies once more would take minutes and a network. So pip installs the wheel
    alone, and a .pth file lends the environment the dependencies of the running one. Files of that
    kind inside the lent folder are not read, so the checkout itself stays out of reach.
    """
    folder = tmp_path_factory.mktemp("fresh")
    call([sys.executable, "-m", "venv", folder / "venv"], cwd=folder)
    binaries = folder / "venv" / "bin"
    empty = folder / "empty"
    empty.mkdir()
    pip = [binaries / "python", "-m", "pip", "install", "--disable-pip-version-check"]
    call([*pip, "--no-index", "--no-deps", wheel], cwd=empty)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    place = call([binaries / "python", "-c", ask], cwd=empty).strip()
    lent = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    with open(f"{place}/lent.pth", "w", encoding="utf-8") as file:  # noqa: PTH123 - a text path
        file.write("\n".join(lent) + "\n")
    return binaries


def test_it_holds_every_file_of_the_packages(wheel: Path, tracked: list[Path]) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    of_ours = {p.relative_to(SRC).as_posix() for p in tracked if p.is_relative_to(SRC)}
    assert of_ours <= inside
    for name in ("drivefeed/py.typed", "drivefeed/catalog/migrations/env.py", "graphsim/app.py"):
        assert name in inside
    assert any(name.startswith("drivefeed/catalog/migrations/versions/") for name in inside)
    assert any(name.startswith("drivefeed/sample/manuscripts/") for name in inside)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in inside)


def test_it_holds_nothing_else(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"drivefeed", "graphsim"}


def test_it_runs_from_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    assert call([installed / "drivefeed", "version"], cwd=tmp_path).startswith("drivefeed ")
    assert "usage" in call([installed / "graphsim", "--help"], cwd=tmp_path).lower()
    assert list(tmp_path.iterdir()) == []


def test_it_runs_its_own_copy_of_the_code(installed: Path, tmp_path: Path) -> None:
    ask = "import drivefeed, graphsim; print(drivefeed.__file__); print(graphsim.__file__)"
    for line in call([installed / "python", "-c", ask], cwd=tmp_path).splitlines():
        assert line.startswith(str(installed.parent))


def test_the_sample_comes_with_it(installed: Path, tmp_path: Path) -> None:
    ask = "import pathlib; from drivefeed.sample import write_sample as w; w(pathlib.Path('s'))"
    call([installed / "python", "-c", ask], cwd=tmp_path)
    assert len([path for path in (tmp_path / "s").rglob("*") if path.is_file()]) >= 10
