"""A folder that changes while it is looked at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from graphsim.scanning import scan

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_file_that_is_renamed_during_a_look_is_seen_under_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.txt").write_text("The same file.", encoding="utf-8")
    looks = _rename_after_each_listing(tmp_path, ["new.txt"], monkeypatch)

    assert [one.name for one in scan(str(tmp_path)).folders[""]] == ["new.txt"]
    assert len(looks) == 2


def test_a_folder_that_never_rests_is_looked_at_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.txt").write_text("The same file.", encoding="utf-8")
    looks = _rename_after_each_listing(tmp_path, [f"{n}.txt" for n in range(99)], monkeypatch)

    assert scan(str(tmp_path)).folders == {"": []}
    assert 1 < len(looks) < 10


def _rename_after_each_listing(
    folder: Path, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Rename the one file after each listing while there are names; return who was listed."""
    really = os.scandir
    looks: list[str] = []

    def listed(path: str) -> _Listed:
        with really(path) as entries:
            found = list(entries)
        looks.extend(one.name for one in found)
        if names:
            (folder / looks[-1]).rename(folder / names.pop(0))
        return _Listed(found)

    monkeypatch.setattr(os, "scandir", listed)
    return looks


class _Listed(list[os.DirEntry[str]]):
    """Entries that were read already, as ``os.scandir`` would give them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None
