"""What was found of one part: a colour, a sentence, and the remedy that cures it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Colour(StrEnum):
    """How a part is. Grey was not looked at, because something it needs is not well."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"
    GREY = "grey"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one part; what is not green has a remedy.

    Attributes:
        part: which check it comes from.
        subject: the host, account, drive or folder that it is about; empty where there is one only.
    """

    part: str
    colour: Colour
    words: str
    remedy: str = ""
    subject: str = ""

    @property
    def is_well(self) -> bool:
        """Whether what needs this part can be looked at."""
        return self.colour in {Colour.GREEN, Colour.YELLOW}


def green(part: str, words: str, *, subject: str = "") -> Finding:
    """Return a finding of something that is well."""
    return Finding(part, Colour.GREEN, words, subject=subject)


def yellow(part: str, words: str, remedy: str, *, subject: str = "") -> Finding:
    """Return a finding of something to look after, which stops nothing yet."""
    return Finding(part, Colour.YELLOW, words, remedy, subject)


def red(part: str, words: str, remedy: str, *, subject: str = "") -> Finding:
    """Return a finding of something that is broken."""
    return Finding(part, Colour.RED, words, remedy, subject)
