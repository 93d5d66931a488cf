from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from drivefeed.indexer.work_folder import work_folder

if TYPE_CHECKING:
    import pytest


def test_the_data_folder_may_be_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "drivefeed-data").mkdir()
    monkeypatch.chdir(tmp_path)
    with work_folder(Path("drivefeed-data")) as folder:
        assert folder.is_absolute()
        assert folder.parent == tmp_path / "drivefeed-data"
    assert not folder.exists()
