"""Files as a table: whatever a path is like, where each file stands can be read."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from drivefeed.catalog.listing import ListedFile
from drivefeed.catalog.progress import Standing
from drivefeed.cli import imports as shown
from drivefeed.cli.imports import lines_of, table_of

LONG = "deep/" * 40 + "x" * 80 + ".txt"


def listed(path: str, standing: Standing = Standing.SEARCHABLE, why: str = "settled") -> ListedFile:
    return ListedFile(
        connection_id="connection-1",
        item_id="item-1",
        path=path,
        detail="",
        standing=standing.value,
        why=why,
        document_id="document-1",
        import_id="import-1",
        state="settled",
        round=1,
        pages=3,
        chunks=12,
        size=4_096,
        live=True,
    )


FILES = [
    listed("a.txt"),
    listed("two\nlines.txt"),
    listed(LONG),
    listed("zero.bin", Standing.SKIPPED, "unsupported_type"),
]


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_a_terminal_cuts_no_standing(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(width=width, file=io.StringIO(), record=True, emoji=False)
    monkeypatch.setattr(shown, "columns", lambda: width)

    console.print(table_of(FILES))

    text = console.export_text()
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    assert text.count("searchable") == 3
    assert "unsupported_type" in text
    assert "two␊lines.txt" in text


def test_a_wide_terminal_has_the_reason_beside_the_standing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console = Console(width=100, file=io.StringIO(), record=True, emoji=False)
    monkeypatch.setattr(shown, "columns", lambda: 100)
    console.print(table_of([FILES[0], FILES[3]]))
    assert "skipped unsupported_type" in console.export_text()


def test_one_long_path_makes_no_other_line_long() -> None:
    lines = list(lines_of(FILES))
    assert len(lines) == 5
    assert [len(line) > 120 for line in lines] == [False, False, False, True, False]
    assert all(line == line.rstrip() for line in lines)
    assert "skipped unsupported_type" in lines[4]
    assert lines[3].startswith(LONG)
