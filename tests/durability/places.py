"""The checkpoint of a life that is to end: it dies where it is told to, and goes wrong where told.

What happens once in all lives of a run is kept in the run's folder: a life that comes after does
not do it again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import NeedsAttention, Part, PartDown, Transient
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

FAULTY_LIVES = 10
FAULTS: dict[str, Callable[[], Exception]] = {
    "transient": lambda: Transient("Made up: it did not work."),
    "down": lambda: PartDown("Made up: the source does not answer.", part=Part.SOURCE),
    "person": lambda: NeedsAttention("Made up: look at it.", reason=Reason.SOURCE_MISBEHAVES),
}


@dataclass
class Places:
    """Passes checkpoints.

    Attributes:
        folder: the run's: ``deaths`` has a line for each death, ``wrong`` one for each effect
            without its checkpoints, ``done`` an empty file for what happens once.
        armed: names at which to die.
        faults: by name, what is raised there; read from the run's ``plan.json``.
        actions: by name, a file and what is written to it once; from there too.
        watchers: told of every name.
    """

    folder: Path
    armed: set[str]
    faults: dict[str, str] = field(default_factory=dict)
    actions: dict[str, tuple[str, str]] = field(default_factory=dict)
    watchers: list[Callable[[str], None]] = field(default_factory=list)
    passed: set[str] = field(default_factory=set)
    _seen: int = 0
    _raised: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, job: dict[str, Any]) -> Places:
        """Return those of a job."""
        folder = Path(job["folder"])
        (folder / "done").mkdir(parents=True, exist_ok=True)
        return cls(folder, set(job["armed"]))

    def __call__(self, name: str) -> None:
        """Pass the place, or do not."""
        self.passed.add(name)
        for tell in self.watchers:
            tell(name)
        if name in self.armed:
            with (self.folder / "deaths").open("a", encoding="utf-8") as deaths:
                deaths.write(f"{os.getpid()} {name}\n")
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()
        self._look()
        if name in self.actions and self._first(f"did {name}"):
            path, words = self.actions[name]
            Path(path).write_text(words, encoding="utf-8")
        if name in self.faults and self._goes_wrong(name):
            error = FAULTS[self.faults[name]]()
            raise error

    def _goes_wrong(self, name: str) -> bool:
        """Once in a life, and in a few lives: one may die before anything comes of it."""
        if name in self._raised:
            return False
        self._raised.add(name)
        return any(self._first(f"raised {name} {number}") for number in range(FAULTY_LIVES))

    def _look(self) -> None:
        """Read what was arranged meanwhile."""
        try:
            changed = (self.folder / "plan.json").stat().st_mtime_ns
        except FileNotFoundError:
            return
        if changed != self._seen:
            plan = json.loads((self.folder / "plan.json").read_text(encoding="utf-8"))
            self.faults, self.actions, self._seen = plan["faults"], plan["actions"], changed

    def _first(self, what: str) -> bool:
        try:
            (self.folder / "done" / what).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def wrong(self, words: str) -> None:
        """Write down an effect that has no checkpoints around it."""
        with (self.folder / "wrong").open("a", encoding="utf-8") as wrong:
            wrong.write(words + "\n")

    def end(self) -> None:
        """Write down what this life passed and loaded; one that is killed does not."""
        with (self.folder / "passed").open("a", encoding="utf-8") as passed:
            passed.writelines(f"{name}\n" for name in sorted(self.passed))
        loaded = [name for name, one in sys.modules.items() if one is not None]
        (self.folder / "modules.json").write_text(json.dumps(loaded), encoding="utf-8")
