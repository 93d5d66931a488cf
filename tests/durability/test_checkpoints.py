"""Killed at every checkpoint there is, and each time everything is there once.

Each run goes through a day of its own and dies at many names, one after the other: the first name
of the run's that a life passes ends it, and the next life may die at the others. A death counts
only where the process was ended by SIGKILL and had written down that it was at that name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain.checkpoints import checkpoints
from durability.days import Day
from durability.evidence import broken_in, differing
from durability.runs import RUNS
from durability.town import Town, running_town
from support.evidence import files_below

if TYPE_CHECKING:
    from collections.abc import Iterator


DAYS = 2
"""So many runs share what a day passes; a row that is interrupted too often asks a person."""

TOGETHER = ("relay.taken",)
"""What follows only a death before a claim, and that is in the first day."""
_ELSEWHERE = tuple(prefix for _, prefixes in RUNS.values() for prefix in prefixes)
PLACES = [*(f"day {number}" for number in range(DAYS)), *RUNS]


def place_of(name: str) -> str:
    """Return the run in which a process dies at a name."""
    for place, (_, prefixes) in RUNS.items():
        if name.startswith(prefixes):
            return place
    if name.startswith(TOGETHER):
        return "day 0"
    of_days = [one for one in checkpoints() if not one.startswith(_ELSEWHERE)]
    return f"day {of_days.index(name) % DAYS}"


@dataclass
class Lived:
    """What became of a run.

    Attributes:
        deaths: the names at which a life died, in order.
        spared: names that no life passed.
        trouble: why the run came to no end, or what was found in the end.
    """

    deaths: list[str] = field(default_factory=list)
    spared: set[str] = field(default_factory=set)
    trouble: str = ""


class Book:
    """Runs that were lived already, so that all names of a run share one."""

    def __init__(self, town: Town) -> None:
        self.town = town
        self._lived: dict[str, Lived] = {}

    def of(self, place: str) -> Lived:
        """Live a run unless it was."""
        if place not in self._lived:
            self._lived[place] = self._live(place)
        return self._lived[place]

    def _live(self, place: str) -> Lived:
        number = PLACES.index(place)
        run = self.town.run(number)
        day = Day(self.town, run, self.town.folders[number])
        self._warm_up()
        names = [name for name in checkpoints() if place_of(name) == place]
        try:
            if place in RUNS:
                run.armed = set(names)
                RUNS[place][0](day)
            else:
                day.passes(names)
            return Lived(run.deaths, set(names) - set(run.deaths), "\n".join(self._found(day)))
        except AssertionError as error:
            return Lived(run.deaths, set(names) - set(run.deaths), f"{error}\n{day.unrest()}")
        finally:
            run.abandon()

    def _warm_up(self) -> None:
        """Have the host load what a life needs, by a life in which nothing happens to anybody."""
        if self._lived:
            return
        run = self.town.run(len(PLACES))
        day = Day(self.town, run, self.town.folders[len(PLACES)])
        day.write("note.txt", "A note.")
        day.comes_to_rest("of one file")
        run.down()
        run.learn()

    def _found(self, day: Day) -> list[str]:
        return [
            *day.run.wrong(),
            *broken_in(day.run.data),
            *differing(day.run.data, files_below(day.folder)),
        ]


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Book]:
    with running_town(tmp_path_factory.mktemp("town"), drives=len(PLACES) + 1) as town:
        yield Book(town)


@pytest.fixture(scope="module", autouse=True)
def told(book: Book, request: pytest.FixtureRequest) -> Iterator[None]:
    """Print the list of checkpoints with what came of each."""
    yield
    died = {name for lived in book._lived.values() for name in lived.deaths}
    lines = [f"{'died' if name in died else 'not run':8} {name}" for name in checkpoints()]
    reporter: Any = request.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and request.config.getoption("verbose") > 0:
        reporter.ensure_newline()
        reporter.write_line("\n".join(lines))
    print(f"\n{len(died)} of {len(lines)} checkpoints, {book.town.host.cpu:.0f} s of lives")  # noqa: T201


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "name",
    sorted(checkpoints(), key=lambda one: (place_of(one), one)),
    ids=lambda one: f"{place_of(one)}: {one}",
)
def test_killed_here_nothing_is_lost_and_nothing_happens_twice(book: Book, name: str) -> None:
    lived = book.of(place_of(name))
    assert name not in lived.spared, f"no life passed it; {lived.trouble}"
    assert name in lived.deaths
    assert not lived.trouble
