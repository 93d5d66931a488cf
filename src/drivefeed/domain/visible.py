"""Names of others, made safe to show: what cannot be seen is shown, not obeyed."""

from __future__ import annotations

import re
from typing import Final

_UNSEEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(name: str) -> str:
    """Return a name with its control characters and direction marks shown, not obeyed.

    A line break in a file's name would tear a table apart, and an override of the direction of
    writing would make ``exe.txt`` of ``txt.exe``.
    """
    return _UNSEEN.sub(_picture, name)


def visible_lines(text: str) -> str:
    """Return text of several lines, each as :func:`visible` does; tabs stay as well."""
    return re.sub(r"[^\n\t]+", lambda found: visible(found[0]), text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:  # noqa: PLR2004 - the control characters have pictures, in the same order
        return chr(0x2400 + code)
    return f"\\u{code:04x}"
