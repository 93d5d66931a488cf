"""Where what runs leaves word of itself, in the data folder; loads no web server."""

from __future__ import annotations

import json
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DOOR_FILE = "daemon.json"
"""A file in the data folder: ``{"socket": path, "pid": number}``, there while the daemon runs."""
PAGE_FILE = "web.json"
"""The same for the status page: ``{"url": address}``; of several, of the one that began last."""

WORDS_OF_HEALTH = "health-{}.json"
"""The same for each process with a health check on a port, by role and number: ``url``,
``pid``, ``host`` and ``role``."""


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


def words_of_health(folder: Path) -> list[dict[str, Any]]:
    """Return what processes of this machine said of where their health checks are.

    Of one that was killed, the word is removed.
    """
    here = socket.gethostname()
    found = []
    for path in sorted(folder.glob(WORDS_OF_HEALTH.format("*"))):
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            is_here = said["host"] == here
            pid = int(said["pid"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if not is_here:
            continue
        if _lives(pid):
            found.append(said)
        else:
            path.unlink(missing_ok=True)
    return found


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
