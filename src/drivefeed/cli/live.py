"""The demo's screen: stages filling, files a second, an honest percentage, reasons."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from drivefeed.catalog.progress import Progress, Standing
from drivefeed.cli.context import console
from drivefeed.cli.look import certificate_lines, progress_table, reason_lines
from drivefeed.domain.lifecycle import State

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.daemon import Daemon
    from drivefeed.services.certificate import Certificate

_STAGES = (State.DISCOVERED, State.STORED, State.SUBMITTED, State.SETTLED)
_WORDS = {
    State.DISCOVERED: "to be copied",
    State.STORED: "copied, to be submitted",
    State.SUBMITTED: "being read and indexed",
    State.SETTLED: "searchable",
}


class Screen:
    """Shows progress in place on a terminal, or in lines where there is none.

    Args:
        quiet: show nothing, for programs that read the result.
    """

    def __init__(self, served: Path, data: Path, *, quiet: bool) -> None:
        self._served = served
        self._data = data
        self._quiet = quiet
        self._started = time.monotonic()
        self._last_line = ""
        self._first_at: float | None = None
        self._live: Live | None = None
        if not quiet and console.is_terminal:
            self._live = Live(console=console, refresh_per_second=4)
            self._live.start()

    def show(self, found: list[Progress], daemon: Daemon) -> None:
        """Show where everything stands now."""
        done = sum(one.counts[Standing.SEARCHABLE] for one in found)
        if done and self._first_at is None:
            self._first_at = time.monotonic() - self._started
        if self._live is not None:
            self._live.update(self._picture(found, daemon))
        elif not self._quiet:
            line = self._line(found)
            if line != self._last_line:
                console.print(line, highlight=False)
                self._last_line = line

    def close(self, found: list[Progress], certificate: Certificate | None) -> None:
        """Leave the last picture, and say what was compared and how to go on."""
        if self._live is not None:
            self._live.stop()
        if self._quiet:
            return
        for one in found:
            total, done = one.found, one.counts[Standing.SEARCHABLE]
            console.print(f"[bold]{total} found = {done} searchable{self._rest(one)}[/]")
            for line in reason_lines(one):
                console.print(line)
        if certificate is not None:
            for line in certificate_lines(certificate):
                console.print(line)
        seconds = time.monotonic() - self._started
        first = f"{self._first_at:.1f} s" if self._first_at is not None else "none"
        console.print(f"First searchable document after {first}, all after {seconds:.1f} s.")
        console.print(
            f"The folder is {escape(str(self._served))}; the logs are in "
            f"{escape(str(self._data / 'drivefeed.log'))}."
        )

    def _rest(self, one: Progress) -> str:
        parts = [
            f" + {count} {standing.value.replace('_', ' ')}"
            for standing, count in one.counts.items()
            if count and standing is not Standing.SEARCHABLE
        ]
        return "".join(parts)

    def _line(self, found: list[Progress]) -> str:
        return "; ".join(
            f"{one.connection.name}: {one.percent} % of {one.found} files, "
            f"{one.counts[Standing.SEARCHABLE]} searchable{self._rest(one)}"
            for one in found
        )

    def _picture(self, found: list[Progress], daemon: Daemon) -> Group:
        rows: list[Table | Text] = [
            Text.from_markup(
                f"[bold]drivefeed demo[/] serves [cyan]{escape(str(self._served))}[/] as OneDrive"
            ),
            self._stages(found),
            progress_table(found),
        ]
        rows += [Text.from_markup(line) for one in found for line in reason_lines(one)]
        rows += [
            Text.from_markup(f"[red]{part} is down:[/] {escape(words)}")
            for part, words in daemon.breakers.open_parts().items()
        ]
        rows.append(Text(self._pace(found), style="dim"))
        rows.append(
            Text.from_markup(
                "[dim]Edit, rename or delete files in the folder and watch. In another terminal: "
                "drivefeed search 'words' · why FILE · status · verify. Ctrl-C ends.[/]"
            )
        )
        return Group(*rows)

    def _pace(self, found: list[Progress]) -> str:
        seconds = time.monotonic() - self._started
        ended = sum(one.found * one.percent // 100 for one in found)
        return f"{ended / seconds:.1f} files a second on average, {seconds:.0f} s"

    def _stages(self, found: list[Progress]) -> Table:
        total = sum(one.found for one in found) or 1
        table = Table.grid(padding=(0, 1))
        for stage in _STAGES:
            here = sum(
                count
                for one in found
                for (standing, why), count in one.reasons.items()
                if why == stage
                and standing in {Standing.IN_PROGRESS, Standing.SEARCHABLE, Standing.STALE}
            )
            table.add_row(
                f"  {_WORDS[stage]}", ProgressBar(total=total, completed=here, width=40), str(here)
            )
        return table
