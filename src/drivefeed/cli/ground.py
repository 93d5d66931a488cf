"""What a running process stands on: taken away, it says so and ends before it writes any more.

A deleted file can be written for as long as it is open, and whoever does not look goes on working
for nothing. An end in order is no use here: it would write to what is gone, or make it anew.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from drivefeed.cli.context import EXIT_TROUBLE
from drivefeed.cli.last_moment import end_at_once
from drivefeed.cli.trouble import complain
from drivefeed.domain.visible import visible
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from drivefeed.cli.interrupts import Interrupts
    from drivefeed.settings import Settings

LOOK_SECONDS: Final = 0.5
_SURE_AFTER_SECONDS: Final = 0.2
_SQLITE: Final = "sqlite:///"
_GONE = (
    "{what} '{path}' is not there any more: it was deleted, moved or unmounted while drivefeed "
    "worked with it."
)
_OTHER = "{what} '{path}' was replaced by another one while drivefeed worked with it."
_REMEDY = (
    "drivefeed ended at once and wrote nothing more. Put it back where it was and start again; if "
    "it is lost, bring back a backup with 'drivefeed restore', or start anew: what is on the drive "
    "is imported again."
)


class Ground:
    """Watches the data folder and the catalog's file, and ends the process when one is gone.

    A thread of its own looks, because what hangs or fails for the same reason may be anything.

    Args:
        interrupts: its ``on_exit``, as it is then, is called before the end.
    """

    def __init__(self, settings: Settings, interrupts: Interrupts) -> None:
        self._interrupts = interrupts
        self._watched: list[tuple[str, Path]] = []
        if settings.is_for_one_process or settings.redis_url is None:
            self._watched.append(("The data folder", settings.data_dir.absolute()))
        if settings.catalog_url.startswith(_SQLITE):
            file = Path(settings.catalog_url.removeprefix(_SQLITE))
            self._watched.append(("The catalog", file))
        self._known: dict[Path, tuple[int, int]] = {}
        self._over = threading.Event()

    def __enter__(self) -> Self:
        return self

    def hold(self) -> None:
        """Begin to watch; everything is there now."""
        for _, path in self._watched:
            with suppress(OSError):
                self._known[path] = _identity(path)
        threading.Thread(target=self._watch, name="ground", daemon=True).start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        if kind is not None:
            # What fails because the ground is gone would be told as something else.
            self._look()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        if self.trouble() is None:
            return
        # Some programs save a file by putting another one in its place.
        threading.Event().wait(_SURE_AFTER_SECONDS)
        words = self.trouble()
        if words is None:
            return
        with suppress(Exception):
            self._interrupts.on_exit()
        with suppress(OSError):
            log("daemon").error("ground_is_gone", words=words)
            complain(f"drivefeed: {words}")
        end_at_once(EXIT_TROUBLE)

    def trouble(self) -> str | None:
        """Return what is gone and what to do, or None while everything is there."""
        for what, path in self._watched:
            known = self._known.get(path)
            if known is None:
                continue
            try:
                is_same = _identity(path) == known
            except (FileNotFoundError, NotADirectoryError):
                return f"{_GONE.format(what=what, path=visible(str(path)))} {_REMEDY}"
            except OSError:
                continue  # who cannot look does not know
            if not is_same:
                return f"{_OTHER.format(what=what, path=visible(str(path)))} {_REMEDY}"
        return None


def _identity(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino
