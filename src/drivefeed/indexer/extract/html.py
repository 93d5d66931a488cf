"""HTML: the title, and the text of the body as it would be seen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from drivefeed.indexer.extract.pages import Draft, split_evenly
from drivefeed.indexer.extract.text import decode

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.indexer.model import Limits

_DECLARED: Final = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{2,40})", re.IGNORECASE
)
_UNSEEN: Final = "script, style, noscript, template, svg, iframe, object, head"
_BLOCKS: Final = (
    "p, div, section, article, header, footer, main, nav, aside,"
    " h1, h2, h3, h4, h5, h6, li, dt, dd,"
    " tr, table, ul, ol, blockquote, pre, figure,"
    " figcaption, form, option, address, hr, br, caption"
)
_CELLS: Final = "td, th"
_BLANKS: Final = re.compile(r"[ \t\r\n\f\xa0]+")
# Private characters stand for line ends while all others count as blanks.
_LINE: Final = "\ue000"
_CELL: Final = "\ue001"


def read_html(path: Path, *, media_type: str, limits: Limits) -> Draft:
    """Read an HTML file, cut into pages by length."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(_decoded(path.read_bytes()))
    draft = Draft(media_type, limits)
    draft.page_count_is_estimate = True
    title = tree.css_first("head > title") or tree.css_first("title")
    draft.title = title.text() if title is not None else None
    root = tree.css_first("html")
    draft.language = (root.attributes.get("lang") if root is not None else None) or None
    for node in tree.css(_UNSEEN):
        node.decompose()
    for selector, mark in ((_BLOCKS, _LINE), (_CELLS, _CELL)):
        for node in tree.css(selector):
            node.insert_before(mark)
            node.insert_after(mark)
    body = tree.body
    text = body.text(deep=True) if body is not None else ""
    seen = _BLANKS.sub(" ", text).replace(_CELL, " ").replace(_LINE, "\n")
    lines = (" ".join(line.split()) for line in f"{draft.title or ''}\n{seen}".split("\n"))
    draft.add_all(split_evenly("\n".join(line for line in lines if line)))
    return draft


def _decoded(raw: bytes) -> str:
    declared = _DECLARED.search(raw[:4096])
    if declared and not raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        try:
            return raw.decode(declared[1].decode("ascii"), errors="replace")
        except LookupError:
            pass
    return decode(raw)
