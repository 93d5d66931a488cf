"""What a terminal's encoding lacks is shown as an escape."""

from __future__ import annotations

import io
import sys

import pytest

from drivefeed.cli.app import escape_what_cannot_be_written


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_narrow_terminal_breaks_nothing_off(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", printed)
    escape_what_cannot_be_written()
    print("a → b")  # noqa: T201 - what a command prints
    printed.flush()
    assert isinstance(printed.buffer, io.BytesIO)
    assert printed.buffer.getvalue() == rb"a \u2192 b" + b"\n"
