"""Runs in which processes die at checkpoints, each lived once, and what became of them.

Each run goes through a day of its own and dies at many names, one after the other: the first name
of the run's that a life passes ends it, and the next life may die at the others. A death counts
only where the process was ended by SIGKILL and had written down that it was at that name.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drivefeed.domain.checkpoints import checkpoints
from durability.days import Day
from durability.evidence import broken_in, differing
from durability.runs import RUNS
from support.evidence import files_below

if TYPE_CHECKING:
    import pytest

    from durability.town import Town

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
        self.seconds = 0.0
        self._lived: dict[str, Lived] = {}

    def of(self, place: str) -> Lived:
        """Live a run unless it was."""
        if place not in self._lived:
            began = time.monotonic()
            self._lived[place] = self._live(place)
            self.seconds += time.monotonic() - began
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
            *differing(day.run, files_below(day.folder)),
        ]

    def tell(self, config: pytest.Config) -> None:
        """Print what came of each checkpoint, and how many that were."""
        died = {name for lived in self._lived.values() for name in lived.deaths}
        lines = [f"{'died' if name in died else 'not run':8} {name}" for name in checkpoints()]
        reporter: Any = config.pluginmanager.getplugin("terminalreporter")
        if reporter is not None and config.getoption("verbose") > 0:
            reporter.ensure_newline()
            reporter.write_line("\n".join(lines))
        print(  # noqa: T201
            f"\n{len(died)} of {len(lines)} checkpoints, {self.seconds:.0f} s, "
            f"{self.town.host.cpu:.0f} s of lives"
        )

    def assert_killed_at(self, name: str) -> None:
        """Live the run of a name, and see that a life died there and nothing came of it."""
        lived = self.of(place_of(name))
        assert name not in lived.spared, f"no life passed it; {lived.trouble}"
        assert name in lived.deaths, lived.deaths
        assert not lived.trouble, lived.trouble


NAMES = sorted(checkpoints(), key=lambda one: (place_of(one), one))
"""All checkpoints, by the run in which they are passed."""


def told_with_its_place(name: str) -> str:
    """Return how a test of a name is called."""
    return f"{place_of(name)}: {name}"
