"""XLSX and XLSM: values as last calculated, comments, and the words of charts and text boxes.

Read as a stream, cell by cell. The library that reads the other workbooks keeps each sheet as a
full rectangle, for which one stray cell in a far corner asks for more memory than there is.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Final

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract.docx import FlowText
from drivefeed.indexer.extract.package import Package, Properties
from drivefeed.indexer.extract.pages import Draft
from drivefeed.indexer.extract.pptx import ChartText
from drivefeed.indexer.extract.values import shown
from drivefeed.indexer.model import Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from drivefeed.indexer.model import Limits

# The number formats of ECMA-376 part 1, 18.8.30 that show a date or a time.
_DATE_FORMATS: Final = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
# Quoted text, escaped characters, colours and locales say nothing about the kind of a value.
_NO_FORMAT: Final = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_DATE_LETTERS: Final = re.compile(r"[dmyhs]", re.IGNORECASE)
_EPOCH: Final = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - workbooks have no time zones
_EPOCH_1904: Final = dt.datetime(1904, 1, 1)  # noqa: DTZ001 - the same
_DATES: Final = range(1, 2_958_466)  # up to the end of the year 9999


class _Workbook:
    """Reads the list of sheets and the calendar."""

    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []
        self.epoch = _EPOCH

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "s:sheet":
            self.sheets.append((attributes.get("name", ""), attributes.get("r:id", "")))
        elif name == "s:workbookPr" and attributes.get("date1904") in ("1", "true"):
            self.epoch = _EPOCH_1904

    def end(self, name: str) -> None:
        pass

    def data(self, text: str) -> None:
        pass


class _Styles:
    """Reads which cell styles show a date."""

    def __init__(self) -> None:
        self._codes: dict[str, bool] = {}
        self._inside = False
        self.dates: list[bool] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "s:numFmt":
            bare = _NO_FORMAT.sub("", attributes.get("formatCode", ""))
            self._codes[attributes.get("numFmtId", "")] = bool(_DATE_LETTERS.search(bare))
        elif name == "s:cellXfs":
            self._inside = True
        elif name == "s:xf" and self._inside:
            number = attributes.get("numFmtId", "0")
            built_in = number.isdecimal() and int(number) in _DATE_FORMATS
            self.dates.append(self._codes.get(number, built_in))

    def end(self, name: str) -> None:
        if name == "s:cellXfs":
            self._inside = False

    def data(self, text: str) -> None:
        pass


class _Strings:
    """Reads texts that are made of runs: shared strings, or comments."""

    def __init__(self, draft: Draft, item: str) -> None:
        self.texts: list[str] = []
        self._draft = draft
        self._item = item
        self._pieces: list[str] = []
        self._inside = False
        self._phonetic = False
        self._size = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002 - of Reader
        if name == "s:rPh":
            self._phonetic = True
        elif name == "s:t":
            self._inside = not self._phonetic

    def end(self, name: str) -> None:
        if name == "s:t":
            self._inside = False
        elif name == "s:rPh":
            self._phonetic = False
        elif name == self._item:
            self.texts.append("".join(self._pieces))
            self._pieces.clear()

    def data(self, text: str) -> None:
        if self._inside:
            self._pieces.append(text)
            self._size += len(text)
            self._draft.check_size(self._size)


class _Sheet:
    """Reads rows of cells into lines."""

    def __init__(
        self, draft: Draft, strings: Sequence[str], dates: Sequence[bool], epoch: dt.datetime
    ) -> None:
        self.lines: list[str] = []
        self._draft = draft
        self._strings = strings
        self._dates = dates
        self._epoch = epoch
        self._row: list[str] = []
        self._pieces: list[str] = []
        self._kind = ""
        self._dated = False
        self._inside = False
        self._size = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "s:c":
            self._kind = attributes.get("t", "n")
            style = attributes.get("s", "0")
            index = int(style) if style.isdecimal() else 0
            self._dated = index < len(self._dates) and self._dates[index]
            self._pieces.clear()
        elif name in ("s:v", "s:t"):
            self._inside = True

    def end(self, name: str) -> None:
        if name in ("s:v", "s:t"):
            self._inside = False
        elif name == "s:c":
            text = shown(self._value("".join(self._pieces)))
            if text:
                self._row.append(text)
        elif name == "s:row" and self._row:
            line = " | ".join(self._row)
            self._row.clear()
            self.lines.append(line)
            self._size += len(line) + 1
            self._draft.check_size(self._size)

    def data(self, text: str) -> None:
        if self._inside:
            self._pieces.append(text)

    def _value(self, raw: str) -> object:
        """Interpret a cell's content; one that makes no sense is shown as it stands."""
        try:
            match self._kind:
                case "s":
                    return self._strings[int(raw)]
                case "b":
                    return raw.strip() == "1"
                case "d":
                    return dt.datetime.fromisoformat(raw)
                case "n" if raw:
                    number = float(raw)
                    return self._date(number) if self._dated else number
        except (ValueError, IndexError, OverflowError):
            pass
        return raw

    def _date(self, serial: float) -> object:
        if 0 <= serial < 1:
            return (self._epoch + dt.timedelta(days=serial)).time().isoformat("seconds")
        if int(serial) not in _DATES:
            return serial
        # To the second: times are fractions of a day, and floats miss them by microseconds.
        return self._epoch + dt.timedelta(seconds=round(serial * 86_400))


def read_xlsx(path: Path, *, media_type: str, limits: Limits) -> Draft:
    """Read a workbook; hidden sheets count like others.

    Raises:
        Rejected: `corrupt`, `too_large`, `encrypted`.
    """
    draft = Draft(media_type, limits)
    with Package(path, limits) as package:
        draft.title = Properties.of(package).title
        main = next(iter(package.relationships().of_kind("officeDocument")), "xl/workbook.xml")
        if not package.has(main):
            raise Rejected(Reason.CORRUPT, "The file is damaged: the workbook itself is missing.")
        workbook, styles, strings = _Workbook(), _Styles(), _Strings(draft, "s:si")
        package.read(main, workbook)
        related = package.relationships(main)
        for kind, reader in (("styles", styles), ("sharedStrings", strings)):
            for part in related.of_kind(kind):
                if package.has(part):
                    package.read(part, reader)
        for name, identifier in workbook.sheets:
            sheet = _Sheet(draft, strings.texts, styles.dates, workbook.epoch)
            where = related.by_id(identifier)
            if where and package.has(where):
                package.read(where, sheet)
                sheet.lines += _beside_the_cells(package, where, draft)
            draft.add("\n".join(sheet.lines), name)
    return draft


def _beside_the_cells(package: Package, sheet: str, draft: Draft) -> list[str]:
    """Read the comments, text boxes and charts of a sheet."""
    texts: list[str] = []
    related = package.relationships(sheet)
    for part in related.of_kind("comments"):
        if package.has(part):
            comments = _Strings(draft, "s:comment")
            package.read(part, comments)
            texts += comments.texts
    for part in related.of_kind("drawing"):
        if not package.has(part):
            continue
        drawing = FlowText(draft)
        package.read(part, drawing)
        texts.append(drawing.text())
        for chart in package.relationships(part).of_kind("chart"):
            if package.has(chart):
                words = ChartText(draft)
                package.read(chart, words)
                texts.append(words.text())
    return texts
