"""The piece of a chunk that shows why it was found. Pure."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

ELLIPSIS: Final = "…"

_WORD: Final = re.compile(r"\w[\w\u0300-\u036f]*")
"""Letters and digits, with accents that are characters of their own."""

_SHORTEST: Final = 3
"""Words of fewer letters are highlighted only if the query has no longer ones."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of text on one line.

    Attributes:
        text: the piece, with an ellipsis where something was cut off.
        highlights: ranges (start, end) in ``text`` of the words that match, in order.
    """

    text: str
    highlights: tuple[tuple[int, int], ...] = ()


def snippet(text: str, query: str, width: int = 240) -> Snippet:
    """Cut the part of a text that holds the most different words of the query.

    Words match without regard to case and accents, and so do words that begin with a word of the
    query of four letters or more. Cuts fall between words; only a single word longer than
    ``width`` is cut inside. White space becomes single spaces.

    Args:
        text: the chunk's text.
        query: what was searched.
        width: characters of the text to show at most, ellipses not counted.
    """
    flat = " ".join(text.split())
    words = [match.span() for match in _WORD.finditer(flat)]
    sought = _sought(query)
    matches = [
        (start, end, stem)
        for start, end in words
        if (stem := _matching(flat[start:end], sought)) is not None
    ]
    start, end = _window(flat, matches, width)
    before = ELLIPSIS if start > 0 else ""
    after = ELLIPSIS if end < len(flat) else ""
    shift = len(before) - start
    return Snippet(
        text=f"{before}{flat[start:end]}{after}",
        highlights=tuple((s + shift, e + shift) for s, e, _ in matches if start <= s and e <= end),
    )


def _sought(query: str) -> tuple[str, ...]:
    words = {_folded(word) for word in _WORD.findall(query)}
    return tuple(sorted({w for w in words if len(w) >= _SHORTEST} or words, key=len, reverse=True))


def _folded(word: str) -> str:
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def _matching(word: str, sought: tuple[str, ...]) -> str | None:
    folded = _folded(word)
    for stem in sought:
        if folded == stem or (len(stem) > _SHORTEST and folded.startswith(stem)):
            return stem
    return None


def _window(flat: str, matches: list[tuple[int, int, str]], width: int) -> tuple[int, int]:
    """Return the range to show: around the densest group of matches, on borders of words."""
    if len(flat) <= width:
        return 0, len(flat)
    if not matches:
        return 0, _border_before(flat, 0, width)
    first, last = _densest(matches, width)
    spare = max(0, width - (last - first))
    start = max(0, min(first - spare // 2, len(flat) - width))
    start = _border_after(flat, start, first)
    return start, max(_border_before(flat, start, start + width), min(last, start + width))


def _densest(matches: list[tuple[int, int, str]], width: int) -> tuple[int, int]:
    """Return the range of the first group, at most ``width`` wide, with most different words."""
    starts = [start for start, _, _ in matches]
    best, span = (0, 0), (matches[0][0], matches[0][1])
    for index, (start, _, _) in enumerate(matches):
        group = [
            match
            for match in matches[index : bisect_left(starts, start + width)]
            if match[1] <= start + width
        ]
        score = (len({stem for _, _, stem in group}), len(group))
        if score > best:
            best, span = score, (start, group[-1][1])
    return span


def _border_after(flat: str, position: int, latest: int) -> int:
    """Return the first beginning of a word from ``position`` on, at most ``latest``."""
    if position == 0 or flat[position - 1] == " ":
        return position
    space = flat.find(" ", position, latest)
    return latest if space < 0 else space + 1


def _border_before(flat: str, start: int, position: int) -> int:
    """Return the last end of a word up to ``position``; ``position`` if one word fills it all."""
    if position >= len(flat) or flat[position] == " ":
        return min(position, len(flat))
    space = flat.rfind(" ", start, position)
    return position if space <= start else space
