"""Somebody who works in a folder all the time: the changes of a soak run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from support.evidence import files_below

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

FIRST_FILES = 40
MOST_FILES = 400


class Hands:
    """Somebody who never stops working in the folder."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder = folder
        self._chance = chance
        self._bin: list[tuple[Path, str]] = []
        self._count = 0
        self.done: Counter[str] = Counter()
        for number in range(4):
            (folder / f"Shelf {number}").mkdir(parents=True)
        for _ in range(FIRST_FILES):
            self._create()

    def work(self) -> None:
        """Do one thing."""
        files = sorted(files_below(self._folder).values())
        acts: list[Callable[[], None]] = [
            lambda: self._edit(self._chance.choice(files)),
            lambda: self._edit(self._chance.choice(files)),
            lambda: self._move(self._chance.choice(files)),
            lambda: self._delete(self._chance.choice(files)),
            self._restore,
        ]
        if len(files) < MOST_FILES:
            acts += [self._create, self._create]
        self._chance.choice(acts)()

    def _create(self) -> None:
        self._count += 1
        shelf = self._folder / f"Shelf {self._chance.randrange(4)}"
        (shelf / f"note {self._count}.txt").write_text(self._words(), encoding="utf-8")
        self.done["created"] += 1

    def _words(self) -> str:
        # Few contents, so that many a file gets back one that it had.
        return f"Lamp {self._chance.randrange(12)} burns {self._chance.randrange(3)} cans of oil."

    def _edit(self, path: Path) -> None:
        path.write_text(self._words(), encoding="utf-8")
        self.done["edited"] += 1

    def _move(self, path: Path) -> None:
        target = self._folder / f"Shelf {self._chance.randrange(4)}" / path.name
        if target != path:
            path.rename(target)
            self.done["moved"] += 1

    def _delete(self, path: Path) -> None:
        self._bin.append((path, path.read_text(encoding="utf-8")))
        path.unlink()
        self.done["deleted"] += 1

    def _restore(self) -> None:
        if self._bin:
            path, words = self._bin.pop()
            path.write_text(words, encoding="utf-8")
            self.done["restored"] += 1
