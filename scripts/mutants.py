# ruff: noqa: INP001 - run by its path, never imported
"""Takes the handling of each quirk of Microsoft Graph out, and sees that a test notices.

The table is tests/quirks/switches.py. The tests of all rows run once as they are, and have to
pass; then those of each row run with the row's switch off, and at least one of them has to fail.
Ends with 1 if a test fails as it is, if a row has no test, or if a switch goes unnoticed.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quirks.switches import Switch

TESTS = Path(__file__).resolve().parents[1] / "tests"
SECONDS = 30
"""A handling that is out may leave a test without an end."""


_ENDED_WITH_ALL_TESTS = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


class Rounds:
    """A plugin of pytest that runs each test once as it is, and once for each switch of it.

    Args:
        switches: the rows.
    """

    def __init__(self, switches: tuple[Switch, ...]) -> None:
        self.switches = switches
        self.failed: dict[int | None, set[str]] = defaultdict(set)
        self.passed: dict[int | None, set[str]] = defaultdict(set)
        self._now: int | None = None

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the tests of the table."""
        items[:] = [item for item in items if self._rows(item)]

    def _rows(self, item: pytest.Item) -> list[int]:
        name = item.nodeid.removeprefix("tests/")
        return [number for number, row in enumerate(self.switches) if name.startswith(row.tests)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run one test several times."""
        from _pytest.runner import runtestprotocol

        for number in (None, *self._rows(item)):
            self._now = number
            with pytest.MonkeyPatch.context() as patch:
                if number is not None:
                    self.switches[number].off(patch)
                for report in runtestprotocol(item, nextitem=None, log=False):
                    kind = self.failed if report.failed else self.passed
                    kind[number].add(item.nodeid)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        del nextitem
        return True

    def lines(self) -> Iterator[tuple[bool, str]]:
        """Yield a line for each row, and whether it is as it has to be."""
        for number, row in enumerate(self.switches):
            tests = {
                name
                for name in self.passed[None] | self.failed[None]
                if name.removeprefix("tests/").startswith(row.tests)
            }
            green = bool(tests) and not tests & self.failed[None]
            red = bool(self.failed[number])
            words = ("green" if green else "RED" if tests else "NO TEST", "red" if red else "GREEN")
            yield (
                green and red,
                f"{row.quirk:>4}  {words[0]:8}{words[1]:7}{row.where:50}{row.words}",
            )


def main(arguments: list[str]) -> int:
    """Run the tests and print the table."""
    sys.path[:0] = [str(TESTS.parent / "src"), str(TESTS)]
    os.chdir(TESTS.parent)
    from quirks.switches import SWITCHES

    wanted = [row for row in SWITCHES if not arguments or row.quirk in arguments]
    rounds = Rounds(tuple(wanted))
    files = sorted({"tests/" + row.tests.partition("::")[0] for row in wanted})
    # The time of each round by itself, and not over its report, which it would break off.
    limits = [f"--timeout={SECONDS}", "-o", "timeout_func_only=true"]
    # Without sources in tracebacks: Python 3.11 sometimes fails to compile them ("AST constructor
    # recursion depth mismatch") when the collector runs.
    said_of_failures = ["--tb=native", "--show-capture=no"]
    options = ["-q", "-p", "no:cacheprovider", *said_of_failures, *limits]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        ended = pytest.main([*options, *files], plugins=[rounds])
    if ended not in _ENDED_WITH_ALL_TESTS:
        print(said.getvalue())  # noqa: T201 - a command
        return 1
    print("quirk  with it   without it; where it is handled; what the service does\n")  # noqa: T201 - a command
    good = True
    for fine, line in rounds.lines():
        good = good and fine
        print(line)  # noqa: T201 - the same
    print(f"\n{len(wanted)} switches: {'all of them are noticed' if good else 'see above'}.")  # noqa: T201 - the same
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
