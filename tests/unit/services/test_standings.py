"""Where connections stand, as the status page and commands are told."""

from __future__ import annotations

import pytest

from drivefeed.catalog.progress import Progress, Standing
from drivefeed.domain.model import Connection
from drivefeed.services.standings import progress_dict


def progress(*, paused: bool = False, listed: bool = True, files: int = 0) -> Progress:
    found = Progress(
        Connection("c", "o", "d", "r", "Lab", paused=paused),
        "Drive",
        listed=listed,
        listed_at=None,
        drive_hold=None,
        drive_attention=None,
        detail=None,
    )
    found.counts[Standing.SEARCHABLE] = files
    return found


@pytest.mark.parametrize(("paused", "at_rest"), [(False, True), (True, False)])
def test_what_is_paused_is_not_called_up_to_date(paused: bool, at_rest: bool) -> None:  # noqa: FBT001 - a case
    assert progress_dict(progress(paused=paused, files=3))["at_rest"] is at_rest


@pytest.mark.parametrize(("listed", "percent"), [(True, 100), (False, 0)])
def test_an_empty_folder_that_was_listed_is_done(listed: bool, percent: int) -> None:  # noqa: FBT001 - a case
    assert progress_dict(progress(listed=listed))["percent"] == percent


@pytest.mark.parametrize("planned", [None, 4])
def test_what_is_held_is_not_done(planned: int | None) -> None:
    found = progress(files=1)
    found.counts[Standing.HELD] = 3
    found.planned = planned
    assert found.at_rest
    assert found.percent == 25
