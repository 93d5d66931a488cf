"""The demo where there is no terminal: a line whenever something is different."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drivefeed.catalog.progress import Standing
from drivefeed.cli.output import escape, say
from drivefeed.cli.status import word_of
from drivefeed.cli.words import count_of, duration_of, meaning_of, remedy_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from drivefeed.cli.scene import Lately, Scene

_SECONDS_BETWEEN: Final = 1.0
_FAILED: Final = "failed: "


class Lines:
    """Prints scenes as lines: progress at most once a second, failures and notices at once."""

    def __init__(self) -> None:
        self._last = ""
        self._last_at = -_SECONDS_BETWEEN
        self._notices: set[str] = set()
        self._limits: Sequence[str] = []
        self._told: Lately | None = None

    def show(self, scene: Scene) -> None:
        """Print what is different from the last scene."""
        notices = [*scene.notices, *_troubles(scene)]
        for words in notices:
            if words not in self._notices:
                say(words)
        self._notices = set(notices)
        if scene.limits != self._limits and not scene.moving:
            for words in scene.limits:
                say(words)
            self._limits = scene.limits
        self._tell(scene)
        line = _progress(scene)
        is_time = scene.seconds - self._last_at >= _SECONDS_BETWEEN or not scene.moving
        if scene.found and line != self._last and is_time:
            say(f"{duration_of(scene.seconds):>6}  {line}")
            self._last, self._last_at = line, scene.seconds

    def close(self) -> None:
        """Nothing is left to do."""

    def _tell(self, scene: Scene) -> None:
        fresh: list[Lately] = []
        for one in reversed(scene.lately):
            if one is self._told:
                break
            fresh.append(one)
        for one in reversed(fresh):
            path, words = one.happening.path, one.happening.words
            if one.happening.standing is Standing.FAILED:
                code = words.removeprefix(_FAILED)
                say(f"{path} {words}: {meaning_of(code)} → {remedy_of(code)}")
            elif one.happening.standing is not Standing.SEARCHABLE:
                say(f"{path} {words}")
        if scene.lately:
            self._told = scene.lately[-1]


def _troubles(scene: Scene) -> Iterator[str]:
    for part, words in scene.down.items():
        yield f"{part} does not answer: {escape(words)}"
    for one in scene.found:
        code = one.connection.attention or one.drive_attention
        if code:
            name = escape(one.connection.name)
            yield f"{name} waits for you: {code}: {meaning_of(code)} → {remedy_of(code)}"


def _progress(scene: Scene) -> str:
    if not scene.is_listed:
        return f"listing: {count_of(scene.total, 'file')} found so far"
    percent = 100 * scene.ended // scene.total if scene.total else 100
    counts = ", ".join(
        f"{scene.count(standing)} {word_of(standing)}"
        for standing in Standing
        if scene.count(standing) or standing is Standing.SEARCHABLE
    )
    return f"{percent} % of {count_of(scene.total, 'file')}: {counts}"


class Silence:
    """Shows nothing, for programs that read the result."""

    def show(self, scene: Scene) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Nothing is left to do."""
