"""A pause for one embedder that does not answer, so that the others of an installation go on."""

from __future__ import annotations

import time
from typing import Final

from drivefeed.domain.retry import backoff_ms

_FIRST_MS: Final = 1_000
_LONGEST_MS: Final = 30_000


class Pause:
    """How long an embedder is not asked: longer with each failure, over with a success."""

    def __init__(self) -> None:
        self._failures = 0
        self._until = 0.0
        self.words = ""

    @property
    def left_ms(self) -> int:
        """Milliseconds until it may be asked again; 0 for now."""
        return max(0, round((self._until - time.monotonic()) * 1000))

    def begin(self, words: str) -> int:
        """Begin one, for what the embedder said; return its milliseconds."""
        if not self.left_ms:
            self._failures += 1
            wait = backoff_ms(
                self._failures, fraction=0.5, first_ms=_FIRST_MS, longest_ms=_LONGEST_MS
            )
            self._until = time.monotonic() + wait / 1000
        self.words = words
        return max(1, self.left_ms)

    def end(self) -> None:
        """It answered."""
        self._failures, self._until, self.words = 0, 0.0, ""
