"""The table of faults in docs/operations.md promises what a test shows, row by row."""

from __future__ import annotations

import re

from house.project import ROOT

TABLE = re.compile(r"<!-- faults: .*?-->\n\n(.*?)\n\n", re.DOTALL)
CELL = re.compile(r"""\bcell\(\s*"([^"]+)",\s*"([^"]+)"\s*,?\s*\)""")


def promised() -> set[tuple[str, str]]:
    found = TABLE.search((ROOT / "docs" / "operations.md").read_text("utf-8"))
    assert found, "docs/operations.md has lost its table of faults"
    rows = [line.strip("| ").split(" | ") for line in found[1].splitlines()[2:]]
    assert all(len(row) == 5 for row in rows), "a row does not tell all of it"
    return {(row[0], row[1]) for row in rows}


def shown() -> set[tuple[str, str]]:
    return {
        (part, fault)
        for path in (ROOT / "tests").rglob("test_*.py")
        if path.name != "test_faults_table.py"
        for part, fault in CELL.findall(path.read_text("utf-8"))
    }


def test_every_fault_in_the_table_has_a_test_and_every_such_test_a_row() -> None:
    assert promised() == shown()
