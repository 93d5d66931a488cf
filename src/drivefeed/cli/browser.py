"""``browse`` on a terminal: one level after the other, by number."""

from __future__ import annotations

import asyncio
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from drivefeed.cli import EXIT_INTERRUPTED
from drivefeed.cli.browse import (
    Entry,
    Place,
    entries,
    in_library,
    libraries_of,
    of_library,
    of_site,
)
from drivefeed.cli.context import account_parts
from drivefeed.cli.output import console, escape, new_table, say
from drivefeed.cli.words import size_of
from drivefeed.domain.errors import DrivefeedError
from drivefeed.services.choosing import routes_for
from drivefeed.sources.graph import browse
from drivefeed.sources.graph.browse import Library, Site
from drivefeed.sources.graph.resolve import own_library

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from drivefeed.sources.graph.looking import Look

SHOWN = 20
"""Lines on one page of the terminal."""
_HELP = "a number opens · text filters · m more · b back · c connect this · q quit"


@dataclass
class Level:
    """A listing under way: what was fetched of it, and how far it was shown.

    Attributes:
        address: what ``connect`` is given for this place; None where it is no folder.
    """

    title: str
    pages: AsyncIterator[Sequence[Entry]]
    address: str | None = None
    library: Library | None = None
    path: str = ""
    known: list[Entry] = field(default_factory=list)
    until: int = SHOWN
    filter: str = ""
    is_whole: bool = False

    @property
    def fitting(self) -> list[Entry]:
        """What was fetched and matches the filter."""
        wanted = self.filter.casefold()
        return [one for one in self.known if wanted in one.name.casefold()]

    async def fetch(self) -> None:
        """Fetch pages until there is enough to show; a filter looks through all of them."""
        while not self.is_whole and len(self.fitting) <= self.until:
            page = await anext(self.pages, None)
            if page is None:
                self.is_whole = True
            else:
                self.known += page


class Browser:
    """Goes from level to level; reads lines by ``ask``, so that a test can be the person."""

    def __init__(
        self, look: Look, ask: Callable[[str], str], runner: asyncio.Runner | None = None
    ) -> None:
        self._look = look
        self._ask = ask
        self._run = (runner or asyncio.Runner()).run
        self.levels: list[Level] = [Level("Sites", self._start())]

    async def _start(self) -> AsyncIterator[Sequence[Entry]]:
        """Your OneDrive and the sites you follow first, then all sites."""
        first: list[Entry] = []
        if self._look.account.is_delegated:
            try:
                own = await own_library(self._look)
                first.append(Entry("onedrive", "Your OneDrive", own.drive_id, own.web_url))
            except DrivefeedError as error:
                say(f"[yellow]{escape(str(error))}[/]")
            first += [of_site(one) for one in await browse.followed_sites(self._look)]
        yield first
        seen = {one.id for one in first}
        async for page in entries(self._look, Place()):
            yield [one for one in page if one.id not in seen]

    def choose(self) -> str | None:
        """Let the person choose; return what to give to ``connect``, or None."""
        while True:
            level = self.levels[-1]
            try:
                self._run(level.fetch())
            except DrivefeedError as error:
                level.is_whole = True
                say(f"[yellow]{escape(str(error))}[/]")
            self._show(level)
            try:
                line = self._ask("> ").strip()
            except EOFError:
                return None
            if line.casefold() == "q":
                return None
            if line.casefold() == "c" and level.address:
                return level.address
            self._answer(level, line)

    def _answer(self, level: Level, line: str) -> None:
        match line.casefold():
            case "b" | "..":
                if level.filter:
                    level.filter = ""
                elif len(self.levels) > 1:
                    self.levels.pop()
            case "c":
                say("[yellow]Open a library or a folder first.[/]")
            case "m":
                level.until += SHOWN
            case _ if line.isdecimal():
                self._open(level, int(line))
            case _:
                level.filter = line.removeprefix("/")
                level.until = SHOWN

    def _show(self, level: Level) -> None:
        shown = level.fitting[: level.until]
        title = f"[bold]{escape(level.title)}[/]"
        say(title + (f" [dim]with '{escape(level.filter)}'[/]" if level.filter else ""))
        table = new_table("", "name", "", right=frozenset({""}))
        for number, one in enumerate(shown, 1):
            kind = one.kind if one.size is None else size_of(one.size)
            table.add_row(str(number), escape(one.name), f"[dim]{kind}[/]")
        if shown:
            say(table)
        else:
            say("There is nothing here." if not level.filter else "Nothing matches.")
        more = "" if level.is_whole and len(level.fitting) <= level.until else "there is more · "
        say(f"[dim]{more}{_HELP}[/]")

    def _open(self, level: Level, number: int) -> None:
        shown = level.fitting[: level.until]
        if not 1 <= number <= len(shown):
            say("[yellow]There is no such number.[/]")
            return
        one = shown[number - 1]
        match one.kind:
            case "site":
                site = Site(one.id, one.name, one.url)
                self.levels.append(Level(one.name, self._libraries(site)))
            case "library" | "onedrive":
                library = Library(one.id, one.name, "", one.url)
                self._enter(library, "", f"{level.title} / {one.name}", one.url)
            case "folder" if level.library is not None:
                path = f"{level.path}/{one.name}"
                self._enter(level.library, path, f"{level.title} / {one.name}", one.url)
            case _:
                say(f"[yellow]'{escape(one.name)}' is no folder.[/]")

    def _enter(self, library: Library, path: str, title: str, url: str) -> None:
        address = url or f"{library.drive_id}:{path}"
        pages = in_library(self._look, library, path)
        self.levels.append(Level(title, pages, address, library, path))

    async def _libraries(self, site: Site) -> AsyncIterator[Sequence[Entry]]:
        yield [of_library(one) for one in await libraries_of(self._look, site)]


def browse_on_terminal(account: str | None, org: str | None) -> None:
    """Let a person choose a folder; print the command that connects it."""
    with asyncio.Runner() as runner:
        parts_open = account_parts()
        parts = runner.run(parts_open.__aenter__())
        try:
            routes = runner.run(routes_for(parts.catalog, parts.accounts, account=account, org=org))
            look = runner.run(parts.source.look(routes[0].account_id))
            say(f"[dim]Through the account '{escape(look.account.name)}'.[/]")
            chosen = Browser(look, console().input, runner).choose()
        except KeyboardInterrupt:
            raise typer.Exit(EXIT_INTERRUPTED) from None
        finally:
            runner.run(parts_open.__aexit__(None, None, None))
    if chosen is not None:
        say("To see what connecting it would do, and then to do it:")
        said = f"drivefeed connect {shlex.quote(chosen)} --account {shlex.quote(look.account.name)}"
        say(escape(said), indent=2)
        say(escape(f"{said} --apply"), indent=2)
