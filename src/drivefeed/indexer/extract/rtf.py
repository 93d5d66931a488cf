"""Rich Text Format: what a reader would see, headers, notes and text boxes included.

A reader of our own, because the library for it leaves out headers, footers, footnotes and text
boxes, and decodes the bytes of a double-byte code page one by one.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from drivefeed.indexer.extract import rtf_words as words
from drivefeed.indexer.extract.pages import Draft, split_evenly

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.indexer.model import Limits

_TOKEN: Final = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?[0-9]{1,10})? ?"  # control word with its number
    rb"|\\'([0-9a-fA-F]{2})"  # one byte in hexadecimal
    rb"|\\([^a-zA-Z'])"  # control symbol
    rb"|([{}])"
    rb"|([^\\{}\r\n]+)"
    rb"|[\r\n]+|\\"  # line ends mean nothing; a lone backslash at the end of a damaged file
)
_ROW_END: Final = re.compile(r" \| (?=\n|$)")
_LATIN: Final = "cp1252"


@dataclass(slots=True)
class _Group:
    """What a group inherits from the one around it, and loses at its end."""

    skipped: bool = False
    destination: str = ""
    fallback_length: int = 1
    codec: str = _LATIN
    separate: bool = False


def read_rtf(path: Path, *, media_type: str, limits: Limits) -> Draft:
    """Read an RTF file, cut into pages by length."""
    draft = Draft(media_type, limits)
    draft.page_count_is_estimate = True
    rtf = _Rtf(draft)
    rtf.read(path.read_bytes())
    draft.title = "".join(rtf.title)
    draft.add_all(split_evenly(_ROW_END.sub("", "".join(rtf.text))))
    return draft


class _Rtf:
    """Walks the tokens with a stack of groups; damage ends no more than the group it is in."""

    def __init__(self, draft: Draft) -> None:
        self.text: list[str] = []
        self.title: list[str] = []
        self._draft = draft
        self._size = 0
        self._group = _Group()
        self._stack: list[_Group] = []
        self._bytes = bytearray()
        self._units: list[int] = []
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._default = _LATIN
        self._starred = False
        self._ignored = 0

    def read(self, raw: bytes) -> None:
        """Take the whole file."""
        position = 0
        while (token := _TOKEN.match(raw, position)) is not None:
            position = token.end()
            word, number, byte, symbol, brace, plain = token.groups()
            if word is not None:
                name = word.decode("ascii")
                count = int(number) if number is not None else None
                if name == "bin":
                    position += max(0, count or 0)
                else:
                    self._word(name, count)
            elif byte is not None:
                self._add_bytes(bytes.fromhex(byte.decode("ascii")))
            elif symbol is not None:
                self._symbol(symbol)
            elif brace is not None:
                self._brace(brace)
                if not self._stack:
                    break  # the document is over; what follows its last brace is no part of it
            elif plain is not None:
                self._add_bytes(plain)
        self._flush()

    def _brace(self, brace: bytes) -> None:
        self._flush()
        self._ignored = 0
        if brace == b"{":
            self._stack.append(self._group)
            self._group = replace(self._group, separate=False)
        elif self._stack:
            if self._group.separate and not self._group.skipped:
                self._put("\n")
            self._group = self._stack.pop()
        self._starred = False

    def _symbol(self, symbol: bytes) -> None:
        if symbol == b"*":
            self._starred = True
        elif symbol in words.CONTROL_SYMBOLS:
            self._flush()
            self._put(words.CONTROL_SYMBOLS[symbol])

    def _word(self, name: str, count: int | None) -> None:
        if name == "u" and count is not None:
            self._decode()
            self._units.append(count & 0xFFFF)
            self._ignored = self._group.fallback_length
            return
        self._flush()
        self._ignored = 0
        starred, self._starred = self._starred, False
        group = self._group
        if name in words.SKIPPED or (starred and name not in words.SHOWN_ALTHOUGH_STARRED):
            group.skipped = True
        elif name == "ud":
            group.skipped = False  # the Unicode half of \upr, whose other half is skipped
        elif name in ("fonttbl", "title", "info"):
            group.destination = name
        elif name in words.SEPARATE and not group.skipped:
            group.separate = True
            self._put("\n")
        elif name in words.SYMBOLS:
            self._put(words.SYMBOLS[name])
        elif count is not None:
            self._set(name, count)
        elif name == "deleted":
            group.skipped = True
        elif name == "plain":
            group.codec = self._default

    def _set(self, name: str, count: int) -> None:
        group = self._group
        match name:
            case "uc":
                group.fallback_length = max(0, count)
            case "ansicpg":
                page = str(count)
                self._default = group.codec = _known(words.CODE_PAGES.get(page, f"cp{page}"))
            case "f" if group.destination == "fonttbl":
                self._font = count
            case "f":
                group.codec = self._fonts.get(count, self._default)
            case "fcharset" if count in words.CHARSETS:
                self._fonts[self._font] = words.CHARSETS[count]
            case "cpg":
                page = str(count)
                self._fonts[self._font] = _known(words.CODE_PAGES.get(page, f"cp{page}"))

    def _add_bytes(self, raw: bytes) -> None:
        if self._ignored:
            dropped = min(self._ignored, len(raw))
            self._ignored -= dropped
            raw = raw[dropped:]
            if not raw:
                return
        self._join_units()
        if not self._group.skipped and self._group.destination != "fonttbl":
            self._bytes += raw

    def _flush(self) -> None:
        self._decode()
        self._join_units()

    def _decode(self) -> None:
        if self._bytes:
            text = self._bytes.decode(self._group.codec, errors="replace")
            self._bytes.clear()
            self._put(text)

    def _join_units(self) -> None:
        if self._units:
            raw = b"".join(unit.to_bytes(2, "little") for unit in self._units)
            self._units.clear()
            self._put(raw.decode("utf-16-le", errors="replace"))

    def _put(self, text: str) -> None:
        if self._group.skipped:
            return
        match self._group.destination:
            case "":
                self.text.append(text)
                self._size += len(text)
                self._draft.check_size(self._size)
            case "title":
                self.title.append(text)


def _known(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return _LATIN
