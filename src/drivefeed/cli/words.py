"""Words for people on a terminal: those of everywhere, and paths that break where they may."""

from __future__ import annotations

import re
from typing import Final

from drivefeed.domain.words import (
    count_of,
    duration_of,
    instant_of,
    local_time,
    meaning_of,
    remedy_of,
    size_of,
)

__all__ = [
    "count_of",
    "duration_of",
    "folded",
    "instant_of",
    "local_time",
    "meaning_of",
    "remedy_of",
    "shortened",
    "size_of",
]

_PIECE: Final = re.compile(r"[^/ _-]*[/ _-]?")


def folded(path: str, width: int) -> str:
    """Break a path into lines of at most ``width`` characters, after separators where possible.

    A single word that is longer is broken inside.
    """
    lines: list[str] = []
    line = ""
    for piece in _PIECE.findall(path):
        rest = piece
        if line and len(line) + len(rest.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        while len(rest.rstrip()) > width:
            lines.append(rest[:width])
            rest = rest[width:]
        line += rest
    if line:
        lines.append(line.rstrip())
    return "\n".join(lines)


def shortened(path: str, width: int) -> str:
    """Return a path on one line, its middle left out where it is longer than ``width``."""
    if len(path) <= width:
        return path
    keep = max(width - 1, 2)
    head = keep // 3
    return f"{path[:head]}…{path[len(path) - (keep - head) :]}"
