"""Word documents, in document order: whatever a reader of the printed page could read.

Text is taken from `w:t` wherever it stands (paragraphs, nested tables, content controls, text
boxes, tracked insertions, field results), so no container can hide it. Left out: deleted text, the
old place of moved text, field codes, and the copy that Word stores beside each newer drawing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract.package import Package, Properties
from drivefeed.indexer.extract.pages import Draft, clean, split_evenly
from drivefeed.indexer.model import CHARACTERS_PER_PAGE, Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from drivefeed.indexer.model import Limits

PAGE_BREAK: Final = "\x0c"
_TEXT: Final = frozenset({"w:t", "m:t", "a:t"})
_DROPPED: Final = frozenset({"mc:Fallback", "w:moveFrom", "w:del", "w:rPrChange", "w:pPrChange"})
_MARKS: Final = {
    "w:tab": "\t",
    "w:ptab": "\t",
    "w:cr": "\n",
    "w:noBreakHyphen": "-",
    "w:lastRenderedPageBreak": PAGE_BREAK,
    "w:txbxContent": "\n",
    "a:br": "\n",
}
_ENDS: Final = {
    "w:p": "\n",
    "a:p": "\n",
    "w:tc": " | ",
    "w:tr": "\n",
    "w:txbxContent": "\n",
    "a:tc": " | ",
    "a:tr": "\n",
}
_PLAUSIBLE: Final = 4


class FlowText:
    """Collects the running text of a part (WordprocessingML or DrawingML)."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._pieces: list[str] = []
        self._size = 0
        self._inside = 0
        self._dropped = 0

    def text(self) -> str:
        """Return everything that was collected."""
        return "".join(self._pieces)

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begin an element."""
        if self._dropped or name in _DROPPED:
            self._dropped += 1
        elif name in _TEXT:
            self._inside += 1
        elif name == "w:br":
            self._put(PAGE_BREAK if attributes.get("w:type") == "page" else "\n")
        elif name in _MARKS:
            self._put(_MARKS[name])
        elif name == "a:fld" and attributes.get("type") == "slidenum":
            self._dropped += 1

    def end(self, name: str) -> None:
        """End an element."""
        if self._dropped:
            self._dropped -= 1
        elif name in _TEXT:
            self._inside -= 1
        elif name in _ENDS:
            self._close(_ENDS[name])

    def data(self, text: str) -> None:
        """Take character data, if it is text."""
        if self._inside and not self._dropped:
            self._put(text)

    def _put(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        self._draft.check_size(self._size)

    def _close(self, mark: str) -> None:
        # A cell's last paragraph, and a row's last cell, end with what follows them.
        if mark == " | " or (mark == "\n" and self._last() == " | "):
            while self._last() in ("\n", " | "):
                self._size -= len(self._pieces.pop())
        self._put(mark)

    def _last(self) -> str:
        return self._pieces[-1] if self._pieces else ""


def read_docx(path: Path, *, media_type: str, limits: Limits) -> Draft:
    """Read a DOCX, DOCM or DOTX file.

    Pages are those of the last rendering, where the document remembers it; otherwise text is cut
    into as many as `app.xml` says, if that is plausible, or by length. Always an estimate.

    Raises:
        Rejected: `corrupt`, `too_large`, `encrypted`.
    """
    draft = Draft(media_type, limits)
    draft.page_count_is_estimate = True
    with Package(path, limits) as package:
        properties = Properties.of(package)
        main = next(iter(package.relationships().of_kind("officeDocument")), "word/document.xml")
        if not package.has(main):
            raise Rejected(Reason.CORRUPT, "The file is damaged: the document itself is missing.")
        related = package.relationships(main)
        body = _text_of(package, main, draft)
        before = _texts_of(package, related.of_kind("header"), draft)
        after = _texts_of(
            package,
            related.of_kind("footnotes", "endnotes", "comments", "chart", "diagramData", "footer"),
            draft,
        )
    draft.title = properties.title
    draft.language = properties.language
    pages = _paginate(body, properties.page_count)
    pages[0] = "\n".join((*before, pages[0]))
    pages[-1] = "\n".join((pages[-1], *after))
    draft.add_all(pages)
    return draft


def _text_of(package: Package, part: str, draft: Draft) -> str:
    flow = FlowText(draft)
    package.read(part, flow)
    return flow.text()


def _texts_of(package: Package, parts: list[str], draft: Draft) -> list[str]:
    """Read secondary parts once each; sections repeat the same header many times."""
    found: dict[str, None] = {}
    for part in parts:
        if package.has(part):
            text = clean(_text_of(package, part, draft))
            if text:
                found[text] = None
    return list(found)


def _paginate(body: str, stored: int) -> list[str]:
    pages = body.split(PAGE_BREAK)
    # A hard break is followed by a rendered one: the empty page between is none.
    kept = [pages[0], *(page for page in pages[1:] if page.strip())]
    if len(kept) > 1:
        return kept
    by_length = max(1, len(kept[0]) / CHARACTERS_PER_PAGE)
    plausible = by_length / _PLAUSIBLE <= stored <= by_length * _PLAUSIBLE
    return split_evenly(kept[0], stored if plausible and stored else None) or [""]
