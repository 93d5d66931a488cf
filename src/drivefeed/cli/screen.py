"""The demo on a terminal: one picture, drawn anew in place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.live import Live
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from drivefeed.catalog.progress import Standing
from drivefeed.cli.output import escape
from drivefeed.cli.status import COLOURS, reasons_of, word_of
from drivefeed.cli.words import count_of, duration_of, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType

    from drivefeed.cli.scene import Lately, Scene

_WIDEST: Final = 100
_LABEL: Final = 24
_NUMBER: Final = 7
_LEAST_BAR: Final = 10
_MOST_REASONS: Final = 3
_MOST_LATELY: Final = 8
_LEAST_LATELY: Final = 3
_ROOMY: Final = 90
_STEP_COLOURS = ("magenta", "blue", "cyan", "green")
_MARKS = {
    Standing.SEARCHABLE: "✓",
    Standing.FAILED: "✗",
    Standing.SKIPPED: "-",
    Standing.HELD: "‖",
    Standing.STALE: "~",
    Standing.IN_PROGRESS: "→",
}


class TerminalScreen:
    """Shows scenes in place; the last one stays when it is closed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._live.start()
        self._last: Scene | None = None

    def show(self, scene: Scene) -> None:
        """Draw a scene over the last one."""
        self._last = scene
        width, height = self._console.size
        self._live.update(picture(scene, width, height), refresh=True)

    def close(self) -> None:
        """Leave the last scene without its keys, and give the cursor back."""
        if self._last is not None:
            self.show(replace(self._last, keys={}))
            self._last = None
        self._live.stop()


def picture(scene: Scene, width: int, height: int) -> Group:
    """Draw a scene on so many columns and rows; what happened lately takes the rows left."""
    width = min(width, _WIDEST) - 2
    rows: list[RenderableType] = [_title(scene, width), "", _steps(scene, width), ""]
    rows += [_summary(scene), *map(Text.from_markup, scene.limits), *_reasons(scene, width)]
    rows += [Text.from_markup(f"[dark_orange3]●[/] {words}") for words in scene.notices]
    rows += [
        Text.from_markup(f"[red]● {part} does not answer:[/] {escape(words)}")
        for part, words in scene.down.items()
    ]
    foot = _foot(scene, width)
    used = sum(_rows(one, width) for one in (*rows, *foot)) + 3
    room = max(_LEAST_LATELY, min(_MOST_LATELY, height - used - 1))
    lately = [_happened(one, width) for one in scene.lately[-room:]]
    if lately:
        rows += ["", *lately]
    return Group(*(Padding(one, (0, 1)) for one in (*rows, "", *foot)))


def _rows(one: RenderableType, width: int) -> int:
    if isinstance(one, Table):
        return one.row_count
    return max(1, -(-len(one.plain if isinstance(one, Text) else str(one)) // width))


def _title(scene: Scene, width: int) -> Table:
    minutes, seconds = divmod(int(scene.seconds), 60)
    name, elapsed = "drivefeed demo", f"{minutes}:{seconds:02}"
    room = width - len(name) - len(elapsed) - 4
    grid = Table.grid(expand=False)
    grid.add_column(width=width - len(elapsed) - 1, no_wrap=True)
    grid.add_column(justify="right", width=len(elapsed) + 1, no_wrap=True)
    place = escape(shortened(str(scene.served), room))
    grid.add_row(f"[bold]{name}[/]  [dim]{place}[/]", f"[dim]{elapsed}[/]")
    return grid


def _steps(scene: Scene, width: int) -> Table:
    bar = max(_LEAST_BAR, width - _LABEL - _NUMBER - 2)
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=_LABEL, no_wrap=True)
    grid.add_column(width=bar, no_wrap=True)
    grid.add_column(width=_NUMBER - 1, justify="right", no_wrap=True)
    for (name, files), colour in zip(scene.steps().items(), _STEP_COLOURS, strict=True):
        grid.add_row(name, _bar(files, scene.total, bar, colour), str(files))
    return grid


def _bar(files: int, total: int, width: int, colour: str) -> Text:
    full = round(width * files / total) if total else 0
    if files:
        full = max(1, full)
    bar = Text("━" * full, style=colour)
    return bar.append("╌" * (width - full), style="bright_black")


def _summary(scene: Scene) -> Text:
    if not scene.found:
        return Text("signing in …", style="dim")
    if not scene.is_listed:
        words = f"[bold]listing …[/]  {count_of(scene.total, 'file')} found so far"
    else:
        percent = 100 * scene.ended // scene.total if scene.total else 100
        words = f"[bold]{percent} %[/]  {scene.ended} of {count_of(scene.total, 'file')} done"
    for standing in Standing:
        files = scene.count(standing)
        if files and standing not in {Standing.IN_PROGRESS, Standing.SEARCHABLE}:
            words += f" · [{COLOURS[standing]}]{files} {word_of(standing)}[/]"
    if scene.moving:
        words += f" · {scene.files_a_second:.1f} files/s"
        if scene.is_listed and scene.seconds_left is not None:
            words += f" · about {duration_of(max(1, round(scene.seconds_left)))} left"
    elif scene.is_listed:
        words += " · [green]up to date[/]"
    return Text.from_markup(words)


def _reasons(scene: Scene, width: int) -> Iterator[RenderableType]:
    told = [pair for one in scene.found for pair in reasons_of(one)]
    for words, remedy in told[:_MOST_REASONS]:
        yield Text.from_markup(words)
        if remedy:
            yield Text.from_markup(f"  [dim]→ {escape(remedy)}[/]")
    if len(told) > _MOST_REASONS:
        more = f"and {count_of(len(told) - _MOST_REASONS, 'more reason')}: drivefeed status"
        yield Text(shortened(more, width), style="dim")


def _happened(one: Lately, width: int) -> Text:
    standing, words = one.happening.standing, one.happening.words
    colour = COLOURS[standing] if standing is not None else "bright_black"
    mark = _MARKS[standing] if standing is not None else "✕"
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(one.clock, style="dim").append(f" {mark} ", style=colour)
    room = width - len(line) - len(words) - 2
    line.append(shortened(one.happening.path, max(room, _LABEL)))
    return line.append(f"  {words}", style=colour)


def _foot(scene: Scene, width: int) -> list[Text]:
    if not scene.keys:
        return []
    between = "   " if width > _ROOMY else " "
    keys = between.join(f"[bold reverse] {key} [/] {does}" for key, does in scene.keys.items())
    hint = Text(
        "Change files in the folder and watch. Elsewhere: drivefeed search 'your words'",
        style="dim",
        no_wrap=True,
        overflow="ellipsis",
    )
    return [Text.from_markup(keys), hint]
