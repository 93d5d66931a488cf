"""Rich Text Format through striprtf."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, Final

from drivefeed.indexer.extract.pages import Draft, split_evenly

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from drivefeed.indexer.model import Limits

_CODE_PAGE: Final = re.compile(rb"\\ansicpg(\d{1,5})")
_LATIN: Final = "cp1252"


def read_rtf(path: Path, *, media_type: str, limits: Limits) -> Draft:
    """Read an RTF file in the code page that it declares, or in Latin if that is unknown."""
    from striprtf import striprtf

    rtf_to_text: Callable[..., str] = striprtf.rtf_to_text

    raw = path.read_bytes()
    encoding = _encoding(raw)
    try:
        text = rtf_to_text(raw.decode(encoding, errors="replace"), encoding, errors="replace")
    except (LookupError, UnicodeError):
        text = rtf_to_text(raw.decode("latin-1"), _LATIN, errors="replace")
    draft = Draft(media_type, limits)
    draft.page_count_is_estimate = True
    draft.add_all(split_evenly(text))
    return draft


def _encoding(raw: bytes) -> str:
    found = _CODE_PAGE.search(raw[:4096])
    name = f"cp{int(found[1])}" if found else _LATIN
    try:
        codecs.lookup(name)
    except LookupError:
        return _LATIN
    return name
