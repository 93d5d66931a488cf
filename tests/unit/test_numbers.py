"""Numbers that no clock can count to are refused where they are given."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from drivefeed.settings import Settings
from drivefeed.settings_folders import ConnectionSettings
from support.commands import run_command

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_settings_take_no_endless_number(number: float) -> None:
    with pytest.raises(ValidationError, match="finite number"):
        Settings(poll_seconds=number)
    with pytest.raises(ValidationError, match="finite number"):
        ConnectionSettings(account="a", drive_id="d", grace_seconds=number)


@pytest.mark.parametrize("number", ["inf", "nan", "1e300"])
def test_the_demo_takes_no_endless_grace(tmp_path: Path, number: str) -> None:
    (tmp_path / "Docs").mkdir()
    done = run_command("demo", "Docs", "--once", "--grace", number, cwd=tmp_path, ok=(2,))
    assert "--grace" in done.stderr
    assert not (tmp_path / "drivefeed-demo").exists()
