"""The table of quirks itself: what it names is there, long before ``make mutants`` runs."""

from __future__ import annotations

import inspect
import pkgutil
from pathlib import Path

import pytest

from quirks.switches import SWITCHES

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("number", range(len(SWITCHES)), ids=lambda n: SWITCHES[n].quirk)
def test_a_row_names_what_is_there_and_its_switch_fits(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = SWITCHES[number]
    assert inspect.unwrap(pkgutil.resolve_name(f"drivefeed.{row.where}")) is not None
    file, _, beginning = row.tests.partition("::")
    assert f"def {beginning}" in (TESTS / file).read_text(encoding="utf-8")
    row.off(monkeypatch)
