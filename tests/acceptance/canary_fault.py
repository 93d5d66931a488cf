"""``drivefeed`` with a defect put in: storing a file of a certain size raises words of a test.

Its arguments: a file with the words, the size in bytes, then those of drivefeed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from drivefeed import cli
from drivefeed.stores.directory import DirectoryStore


def main() -> None:
    """Put the defect in, and run the command."""
    words, size = Path(sys.argv.pop(1)).read_text(encoding="utf-8"), int(sys.argv.pop(1))
    put = DirectoryStore.put

    async def broken(self: DirectoryStore, key: str, chunks: Any, **facts: Any) -> Any:
        if facts.get("size") == size:
            raise RuntimeError(words)
        return await put(self, key, chunks, **facts)

    DirectoryStore.put = broken  # type: ignore[method-assign]
    cli.main()
