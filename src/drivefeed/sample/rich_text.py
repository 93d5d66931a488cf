"""Manuscripts as RTF 1.5, with letters outside of ASCII as Unicode escapes."""

from __future__ import annotations

from drivefeed.sample.manuscript import (
    Aside,
    Block,
    Bullets,
    Heading,
    PageBreak,
    Paragraph,
    Table,
)

_SIZES = {1: 36, 2: 28}  # half points
_LAST_ASCII = 0x7F
_SIGN_BIT = 0x8000


def render_rtf(blocks: list[Block]) -> bytes:
    """Return an RTF document of headings, paragraphs, lists and tables (as tabbed lines)."""
    body = "\n".join(_render(block) for block in blocks)
    return (
        "{\\rtf1\\ansi\\ansicpg1252\\deff0\\uc1{\\fonttbl{\\f0\\fswiss Helvetica;}}\\f0\\fs22\n"
        f"{body}\n}}\n"
    ).encode("ascii")


def _render(block: Block) -> str:
    rendered = ""
    match block:
        case Heading(level, text):
            rendered = f"{{\\pard\\sb240\\sa120\\b\\fs{_SIZES[level]} {_escape(text)}\\par}}"
        case Paragraph(text):
            rendered = f"{{\\pard\\sa120 {_escape(text)}\\par}}"
        case Bullets(items):
            rendered = "\n".join(
                f"{{\\pard\\fi-284\\li568 \\bullet\\tab {_escape(item)}\\par}}" for item in items
            )
        case Table(rows):
            rendered = "\n".join(
                "{\\pard " + "\\tab ".join(_escape(cell) for cell in row) + "\\par}" for row in rows
            )
        case PageBreak():
            rendered = "\\page"
        case Aside("header", text):
            rendered = f"{{\\header\\pard {_escape(text)}\\par}}"
        case Aside():
            pass  # boxes, groups and notes have no place in this plain form
    return rendered


def _escape(text: str) -> str:
    return "".join(_escape_letter(letter) for letter in text)


def _escape_letter(letter: str) -> str:
    if letter in "\\{}":
        return f"\\{letter}"
    if ord(letter) <= _LAST_ASCII:
        return letter
    units = letter.encode("utf-16-le")
    codes = (int.from_bytes(units[at : at + 2], "little") for at in range(0, len(units), 2))
    # RTF's numbers are signed, sixteen bits wide.
    return "".join(f"\\u{code - 2 * _SIGN_BIT if code >= _SIGN_BIT else code}?" for code in codes)
