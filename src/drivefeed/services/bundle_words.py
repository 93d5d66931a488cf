"""Words that may stand in what goes to others: those that drivefeed itself is written with.

Nobody can list the names of the world. So it is the other way round: what is neither a word of our
own sources nor shaped as a number, an id or the name of an error counts as somebody's name.
"""

from __future__ import annotations

import calendar
import errno
import os
import re
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

import drivefeed

_TOKEN: Final = re.compile(r"<[a-z]+>|\w(?:[\w.+@-]*\w)?")
_DOTTED: Final = re.compile(r"\b[\w-]+(?:\.[\w-]+)+\b")
_WORD: Final = re.compile(r"[A-Za-z]+")
_PARTS: Final = re.compile(r"[-_]+")
_SENTENCE_START: Final = re.compile(r"(?:^\s*|[.:!?]\s+|[(\[\"']|=\s*)\Z")
_LOOK_BACK: Final = 4
_SHAPES: Final = re.compile(
    r"\d[\d.,:]*[A-Za-z%]{0,3}"  # numbers with units, times, ports
    r"|v\d+(?:\.\d+)*"
    r"|\d{4}-\d\d-\d\d(?:T\d\d(?:[\d.+-]|:)*Z?)?"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]+|(?=[a-f]*\d)[0-9a-f]{8,}"
    r"|AADSTS\d+"
    r"|[A-Z]+(?:_[A-Z0-9]+)+"
    r"|[A-Za-z_.]+(?:Error|Exception|Timeout|Warning|Refused)"
)
_NAMES_IN_EXAMPLES: Final = re.compile(
    r"contoso|fabrikam|\.(?:example|invalid)\b|\bexample\.", re.IGNORECASE
)
_SAMPLE: Final = "sample"
"""Made documents: they are full of names."""
_OF_LIBRARIES: Final = (
    "all connection attempts failed nodename nor servname provided or not known temporary failure "
    "in name resolution getaddrinfo errno max retries exceeded with url caused by host port pool "
    "peer closed without sending complete message body self signed certificate verify failed "
    "unable to get local issuer hostname mismatch handshake wrong version number eof occurred in "
    "violation of protocol Traceback most recent call last During handling above another exception "
    "occurred direct cause following NoneType object has no attribute takes positional argument "
    "missing required unexpected keyword unsupported operand list index out range"
)


@cache
def vocabulary() -> frozenset[str]:
    """Return the words of drivefeed's sources and of the system's errors; read once.

    It takes some tenths of a second, so ask in a thread first.
    """
    found: set[str] = set()
    texts = [
        *(os.strerror(number) for number in errno.errorcode),
        *(status.phrase for status in HTTPStatus),
        *(*calendar.day_name, *calendar.day_abbr, *calendar.month_name, *calendar.month_abbr),
        _OF_LIBRARIES,
    ]
    home = Path(drivefeed.__file__).parent
    texts.extend(
        path.read_text(encoding="utf-8")
        for path in home.rglob("*.py")
        if path.relative_to(home).parts[0] != _SAMPLE
    )
    for text in texts:
        found.update(_WORD.findall(text))
        found.update(_DOTTED.findall(text))
    return frozenset(word for word in found if not _NAMES_IN_EXAMPLES.search(word))


def without_strange_words(text: str, words: frozenset[str]) -> str:
    """Return text with ``…`` in place of everything that is no word that we know.

    Args:
        words: further words that may stay, as they are.
    """
    known = vocabulary()

    def judged(found: re.Match[str]) -> str:
        token = found[0]
        before = text[max(0, found.start() - _LOOK_BACK) : found.start()]
        begins = _SENTENCE_START.search(before) is not None
        return token if _may_stay(token, known, words, begins=begins) else "…"

    return _TOKEN.sub(judged, text)


def _may_stay(token: str, known: frozenset[str], words: frozenset[str], *, begins: bool) -> bool:
    if token[0] == "<" or token in known or token in words or _SHAPES.fullmatch(token):
        return True
    if not token.isascii() or any(mark in token for mark in ".@+"):
        return False
    return all(
        part in known
        or _SHAPES.fullmatch(part) is not None
        or (begins and part[:1].lower() + part[1:] in known)
        for part in _PARTS.split(token)
        if part
    )
