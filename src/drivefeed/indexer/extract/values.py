"""Values of cells, written the way a person would read them."""

from __future__ import annotations

import datetime as dt
from typing import Final

_EXACT: Final = 1e15


def shown(cell: object) -> str:
    """Write one value on one line."""
    match cell:
        case None:
            text = ""
        case bool():
            text = "TRUE" if cell else "FALSE"
        case float():
            # Excel itself keeps 15 digits, and stores whole numbers as floats too.
            text = str(int(cell)) if cell.is_integer() and abs(cell) < _EXACT else f"{cell:.15g}"
        case dt.datetime():
            midnight = cell.time() == dt.time()
            text = cell.date().isoformat() if midnight else cell.isoformat(" ", "seconds")
        case _:
            text = " ".join(str(cell).split())
    return text
