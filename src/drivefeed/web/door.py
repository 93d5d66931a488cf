"""Where what runs leaves word of itself, in the data folder; loads no web server."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOOR_FILE = "daemon.json"
"""A file in the data folder: ``{"socket": path, "pid": number}``, there while the daemon runs."""
PAGE_FILE = "web.json"
"""The same for the status page: ``{"url": address}``; of several, of the one that began last."""


@contextmanager
def leaving_word(folder: Path, url: str) -> Iterator[None]:
    """Say where the status page is while the block runs."""
    path = folder / PAGE_FILE
    words = json.dumps({"url": url})
    path.write_text(words, encoding="utf-8")
    try:
        yield
    finally:
        # Another page may have begun since.
        if path.is_file() and path.read_text(encoding="utf-8") == words:
            path.unlink(missing_ok=True)


def word_of_page(folder: Path) -> str | None:
    """Return where a status page was begun last; it may be gone, if it was killed."""
    try:
        url = json.loads((folder / PAGE_FILE).read_text(encoding="utf-8"))["url"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return url if isinstance(url, str) else None
