"""The plain form in which the sample's texts are kept, before they become files of some type.

A manuscript is a sequence of lines. Blank lines part paragraphs; a table or list ends where its
lines end. The marks are:

    # Title                     ## Heading
    - an item of a list         | a cell | another |   (a row; a row of dashes is decoration)
    @header text                the running head of each page
    @box text                   a text box beside the flow
    @group one | two | three    shapes with these texts, grouped
    @notes text                 what a speaker says to the slide
    @page                       a new page begins
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

_ASIDES = ("header", "box", "group", "notes")


@dataclass(frozen=True)
class Heading:
    """A title (level 1) or a heading below it (level 2)."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Running text without line breaks."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """An unnumbered list."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells, all of one length; the first row names the columns."""

    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Aside:
    """Text outside of the flow; `kind` is header, box, group or notes."""

    kind: str
    text: str

    @property
    def parts(self) -> list[str]:
        """The texts of a group's shapes."""
        return [part.strip() for part in self.text.split("|")]


@dataclass(frozen=True)
class PageBreak:
    """What follows begins on a new page."""


Block = Heading | Paragraph | Bullets | Table | Aside | PageBreak


def read_text(name: str) -> str:
    """Return the text of a file in `manuscripts/`, with line feeds only."""
    path = files("drivefeed.sample") / "manuscripts" / name
    return path.read_text(encoding="utf-8").replace("\r\n", "\n")


def parse(text: str) -> list[Block]:
    """Read a manuscript.

    Raises:
        ValueError: if a line begins with a mark that is not listed above.
    """
    blocks: list[Block] = []
    for kind, lines in groupby(text.splitlines(), key=_kind_of):
        match kind:
            case "mark":
                blocks.extend(_read_mark(line) for line in lines)
            case "bullet":
                blocks.append(Bullets(tuple(line[2:].strip() for line in lines)))
            case "row":
                blocks.append(_read_table(list(lines)))
            case "prose":
                blocks.append(Paragraph(" ".join(line.strip() for line in lines)))
    return blocks


def header_of(blocks: list[Block]) -> str:
    """Return the running head, or an empty text."""
    return next((b.text for b in blocks if isinstance(b, Aside) and b.kind == "header"), "")


def title_of(blocks: list[Block]) -> str:
    """Return the title, or else the first heading, or an empty text."""
    return next((b.text for b in blocks if isinstance(b, Heading)), "")


def _kind_of(line: str) -> str:
    if not line.strip():
        return "blank"
    kinds = {"#": "mark", "@": "mark", "|": "row", "-": "bullet"}
    return kinds.get(line[0], "prose")


def _read_mark(line: str) -> Block:
    mark, _, text = line.partition(" ")
    if mark in ("#", "##"):
        return Heading(len(mark), text.strip())
    if mark == "@page":
        return PageBreak()
    if mark[1:] in _ASIDES:
        return Aside(mark[1:], text.strip())
    raise ValueError(f"A manuscript has no mark {mark!r}: {line}")


def _read_table(lines: list[str]) -> Table:
    rows = [tuple(cell.strip() for cell in line.strip().strip("|").split("|")) for line in lines]
    return Table(tuple(row for row in rows if any(set(cell) - set("-: ") for cell in row)))
