"""The last lines of a log, without secrets and names."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.services.bundle_veil import Veil

LINES = 2_000
_MOST_BYTES = 8 * 1024**2
_CODES: Final = frozenset(
    {
        *("event", "level", "timestamp", "room", "stage", "outcome", "part", "reason", "state"),
        *("import_id", "document_id", "job_id", "delivery", "number", "kind", "logger"),
    }
)
"""Keys whose values are words and ids of ours."""
_TRACES: Final = frozenset({"exception", "traceback", "stack"})


def last_lines(path: Path, *, count: int = LINES) -> list[str]:
    """Read the end of a file; of a very long one no more than a few megabytes.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _MOST_BYTES))
        text = file.read().decode("utf-8", "replace")
    return text.splitlines()[-count:]


def veiled_line(line: str, veil: Veil) -> str:
    """Return one line of a log: JSON value by value, other lines as they are."""
    try:
        entry = json.loads(line)
    except ValueError:
        entry = None
    if not isinstance(entry, dict):
        return veil.text(line)
    return json.dumps({key: _value(key, value, veil) for key, value in entry.items()})


def _value(key: str, value: Any, veil: Veil) -> Any:
    if isinstance(value, str):
        if key in _TRACES:
            return veil.traceback(value)
        return value if key in _CODES and " " not in value else veil.text(value)
    if isinstance(value, dict):
        return {inner: _value(inner, one, veil) for inner, one in value.items()}
    if isinstance(value, list):
        return [_value(key, one, veil) for one in value]
    return value
