"""Which cell of the table of faults a test stands for."""

from __future__ import annotations

import pytest


def cell(part: str, fault: str) -> pytest.MarkDecorator:
    """Mark a test as the one for a row of the table in docs/operations.md."""
    return pytest.mark.cell(part, fault)
