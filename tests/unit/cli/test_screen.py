"""The demo's picture fits the terminal, whatever its size."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from drivefeed.catalog.progress import Progress, Standing
from drivefeed.cli.happenings import Happening
from drivefeed.cli.lines import Lines
from drivefeed.cli.scene import Lately, Scene
from drivefeed.cli.screen import TerminalScreen, picture
from drivefeed.domain.model import Connection, Policy
from drivefeed.domain.reasons import Reason


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


def test_the_last_picture_offers_no_keys() -> None:
    seen = io.StringIO()
    screen = TerminalScreen(
        Console(width=80, height=30, file=seen, force_terminal=True, emoji=False, color_system=None)
    )
    screen.show(scene())
    assert "stop workers" in seen.getvalue()
    seen.truncate(seen.seek(0))
    screen.close()
    screen.close()
    assert "became searchable" in seen.getvalue()
    assert "stop workers" not in seen.getvalue()


def test_lines_tell_once_what_waits_for_a_person_and_which_part_is_down(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Lines()
    shown = scene()
    (one,) = shown.found
    stopped = replace(one, connection=replace(one.connection, attention=Reason.MASS_REMOVAL))
    waiting = replace(shown, found=[stopped], down={"index": "Only 36 MiB are free."})
    lines.show(shown)
    lines.show(waiting)
    lines.show(replace(waiting, seconds=99))
    printed = capsys.readouterr().out
    assert printed.count("Docs waits for you: mass_removal: ") == 1
    assert printed.count("index does not answer: Only 36 MiB are free.") == 1
