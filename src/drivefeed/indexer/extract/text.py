"""Plain text: TXT, Markdown, CSV and their relatives, in whatever encoding they come."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract.pages import Draft, split_evenly
from drivefeed.indexer.model import Rejected

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.indexer.model import Limits

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE: Final = 256 * 1024
_MOST_BYTES_PER_BYTE: Final = 4  # ASCII in UTF-32, against the same in UTF-8
# Control characters that no text has: all but tab, line feed, form feed, carriage return, escape.
_BINARY: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_MOST_BINARY_BYTES: Final = 0.02


def looks_like_text(head: bytes) -> bool:
    """Tell whether the beginning of a file is text in any common encoding."""
    if any(head.startswith(mark) for mark, _ in _MARKS) or _wide_encoding(head) is not None:
        return True
    return len(_BINARY.findall(head)) <= len(head) * _MOST_BINARY_BYTES


def decode(raw: bytes) -> str:
    """Decode bytes of unknown encoding; never raises, replaces what can't be read."""
    for mark, name in _MARKS:
        if raw.startswith(mark):
            return raw.decode(name, errors="replace")
    wide = _wide_encoding(raw[:_SAMPLE])
    if wide is not None:
        return raw.decode(wide, errors="replace")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode(_guess(raw), errors="replace")


def read_text(path: Path, *, media_type: str, limits: Limits) -> Draft:
    """Read a text file, cut into pages of about `CHARACTERS_PER_PAGE` characters.

    Raises:
        Rejected: `unsupported_type` when the bytes are no text, `too_large` when they are so many
            that their text must be more than allowed, whatever the encoding.
    """
    if path.stat().st_size > _MOST_BYTES_PER_BYTE * limits.text_bytes:
        raise Rejected(
            Reason.TOO_LARGE,
            f"The document holds more than {limits.text_bytes / 1e6:,.0f} MB of text.",
        )
    raw = path.read_bytes()
    if not looks_like_text(raw[:_SAMPLE]):
        raise Rejected(
            Reason.UNSUPPORTED_TYPE,
            "The file is called text, but its content is not. Check what it really is.",
        )
    draft = Draft(media_type, limits)
    draft.add_all(split_evenly(decode(raw)))
    draft.page_count_is_estimate = True
    return draft


def _wide_encoding(head: bytes) -> str | None:
    """Recognise UTF-16 without a mark: every other byte of Latin text is zero."""
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if half == 0:
        return None
    if odd > half * 0.6 and even < half * 0.1:
        return "utf-16-le"
    if even > half * 0.6 and odd < half * 0.1:
        return "utf-16-be"
    return None


def _guess(raw: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(raw[:_SAMPLE]).best()
    return best.encoding if best is not None else "cp1252"
