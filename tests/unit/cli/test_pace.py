from __future__ import annotations

import pytest

from drivefeed.cli.pace import WINDOW_SECONDS, Pace


def test_the_rate_is_that_of_the_last_seconds_and_not_of_all_time() -> None:
    pace = Pace()
    for second in range(11):
        pace.look(float(second), second * 5)
    assert pace.files_a_second == pytest.approx(5.0)

    for second in range(11, 11 + int(WINDOW_SECONDS) + 2):
        pace.look(float(second), 50)

    assert pace.files_a_second == 0.0
    assert pace.seconds_left(20) is None


def test_files_that_start_over_are_no_progress_backwards() -> None:
    pace = Pace()
    for second, ended in enumerate((10, 12, 4, 6)):
        pace.look(float(second), ended)

    assert pace.files_a_second == pytest.approx(4 / 3)


def test_the_time_left_needs_a_few_files_to_go_by() -> None:
    pace = Pace()
    pace.look(0.0, 0)
    pace.look(2.0, 2)
    assert pace.seconds_left(10) is None

    pace.look(4.0, 4)

    assert pace.seconds_left(10) == pytest.approx(10.0)
    assert pace.seconds_left(0) is None
