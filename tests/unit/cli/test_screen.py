"""The demo's picture fits the terminal, whatever its size."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from drivefeed.catalog.progress import Progress, Standing
from drivefeed.cli.happenings import Happening
from drivefeed.cli.scene import Lately, Scene
from drivefeed.cli.screen import picture
from drivefeed.domain.model import Connection, Policy


def scene() -> Scene:
    progress = Progress(
        connection=Connection("c", "o", "d", "root", "Docs", Policy(), False, None),
        drive_name="Docs",
        listed=True,
        listed_at=1,
        drive_hold=None,
        drive_attention=None,
        detail=None,
    )
    progress.counts |= {Standing.SEARCHABLE: 6, Standing.IN_PROGRESS: 3, Standing.FAILED: 1}
    progress.reasons = {
        (Standing.SEARCHABLE, "settled"): 6,
        (Standing.IN_PROGRESS, "stored"): 3,
        (Standing.FAILED, "download_forbidden"): 1,
    }
    path = "A long folder name/another long folder name/a file with quite a long name too.docx"
    lately = [
        Lately("12:00:00", Happening(path, "became searchable (7 chunks)", Standing.SEARCHABLE))
    ] * 30
    keys = {"f": "fail", "c": "clear, retry", "w": "stop workers", "s": "slow", "n": "new file"}
    return Scene(
        Path("/srv/with/a/long/path/to/the/folder/OneDrive"),
        seconds=75,
        found=[progress],
        files_a_second=1.5,
        seconds_left=2.0,
        limits=["[bold]demo[/]: 30 of 100 pages used, 3 held for files under way, 67 free."],
        notices=["Slow: each step waits 1.5 s first."],
        lately=lately,
        keys=keys | {"q": "quit"},
    )


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("height", [24, 50])
def test_it_fits(width: int, height: int) -> None:
    console = Console(width=width, height=height, file=io.StringIO(), record=True, emoji=False)

    console.print(picture(scene(), width, height))

    lines = console.export_text().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width
    assert width < 80 or len(lines) <= height
    text = " ".join(" ".join(lines).split())
    assert "70 % 7 of 10 files done · 1 failed · 1.5 files/s · about 2" in text
    assert "demo: 30 of 100 pages used, 3 held for files under way, 67 free." in text
    assert "download_forbidden" in text
    assert "1:15" in text
    assert text.count("became searchable") >= 3
