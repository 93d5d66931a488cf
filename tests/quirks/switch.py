"""One row of the table of quirks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    Off = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Switch:
    """One row.

    Attributes:
        quirk: its number in the list, with a letter where it has several sides; ``-`` for none.
        words: what the service does.
        where: the function that handles it.
        tests: a file of tests and the beginning of their names.
        off: takes the handling out.
    """

    quirk: str
    words: str
    where: str
    tests: str
    off: Off
