"""What a file of connections says wrong about names."""

from __future__ import annotations

from drivefeed.domain.declared import read_declared


def test_a_name_that_cannot_be_shown_is_a_problem_of_its_entry() -> None:
    text = """
[[connections]]
drive_id = "d"
name = "\\u001b[31mHa\\nr"
"""

    (entry,), (problem,) = read_declared(text, now=0)

    assert not entry.is_named
    assert problem.line == 4
    assert "cannot be seen" in str(problem)
    assert "\x1b" not in str(problem)
