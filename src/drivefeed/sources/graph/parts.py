"""What an answer of a download host holds of a file, and the two ways it can fail us."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from drivefeed.domain.errors import DrivefeedError, Transient

if TYPE_CHECKING:
    import httpx

_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
PARTIAL = 206


class Again(Exception):
    """This connection failed in a way that a fresh URL may cure; ``last`` is raised if not.

    Attributes:
        refused: whether the host refused the URL itself: one fresh one is worth asking for.
    """

    def __init__(self, last: DrivefeedError, *, refused: bool = False) -> None:
        super().__init__(str(last))
        self.last = last
        self.refused = refused


class Changed(Transient):
    """The version that was begun is no longer there; only a new stream can help."""

    def __init__(self) -> None:
        super().__init__("The file was changed while it was copied, so it is copied again.")


def encoded(response: httpx.Response) -> bool:
    """Tell whether the body is compressed, although we asked for it as it is."""
    return response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}


def extent(response: httpx.Response) -> tuple[int | None, int | None]:
    """Return the size of the whole content and the offset of a part (None: from the start).

    Raises:
        Again: it is a part, but of what does not become clear.
    """
    if response.status_code == PARTIAL:
        match = _RANGE.fullmatch(response.headers.get("content-range", "").strip())
        if match is None:
            raise Again(Transient("The download host sent a part without saying which."))
        return (None if match[3] == "*" else int(match[3])), int(match[1])
    length = response.headers.get("content-length", "")
    if encoded(response) or not length.isdigit():
        return None, None
    return int(length), None
