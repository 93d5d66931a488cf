from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.cli.words import count_of, duration_of, folded, shortened, size_of
from drivefeed.domain.visible import visible


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (4.21, "4.2 s"), (12.6, "13 s"), (60, "1 min"), (185, "3 min 5 s"),
     (7200, "2 h"), (90_000, "1 d 1 h")],
)  # fmt: skip
def test_durations(seconds: float, words: str) -> None:
    assert duration_of(seconds) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 20, "5.0 MiB"), (3 << 40, "3.0 TiB")],
)
def test_sizes(number: int, words: str) -> None:
    assert size_of(number) == words


def test_counts() -> None:
    assert (count_of(0, "page"), count_of(1, "page")) == ("0 pages", "1 page")


def test_paths_break_after_separators() -> None:
    path = "Handbook/Operations handbook.pdf"

    assert folded(path, 24) == "Handbook/Operations\nhandbook.pdf"
    assert folded(path, 40) == path


@given(st.text(alphabet="ab/ _-.", max_size=60), st.integers(min_value=4, max_value=30))
def test_folding_loses_nothing_and_keeps_to_the_width(path: str, width: int) -> None:
    lines = folded(path, width).split("\n")

    assert "".join("".join(lines).split()) == "".join(path.split())
    assert all(len(line) <= width for line in lines)


@given(st.text(alphabet="ab/ ", max_size=60), st.integers(min_value=4, max_value=30))
def test_shortening_keeps_to_the_width_and_keeps_the_end(path: str, width: int) -> None:
    short = shortened(path, width)

    assert len(short) <= max(width, 3)
    assert short == path or path.endswith(short.partition("…")[2])


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("two\nlines\t.txt", "two␊lines␉.txt"),
        ("exe.\u202etxt", "exe.\\u202etxt"),
        ("\x9b31m", "\\u009b31m"),
        ("שלום Ünï 🦊.md", "שלום Ünï 🦊.md"),
    ],
)
def test_a_name_stays_on_its_line(name: str, shown: str) -> None:
    assert visible(name) == shown
