"""The project as the tests of our own rules see it."""

from __future__ import annotations

import ast  # noqa: TC003 - the fields of a dataclass
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"


@dataclass(frozen=True)
class Module:
    """A module of src with its source and syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return self.path.relative_to(SRC).as_posix()
