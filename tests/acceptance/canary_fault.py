"""``drivefeed`` with a defect put in: storing a file of a certain size raises words of a test.

Usage: ``python canary_fault.py WORDS-FILE BYTES [drivefeed's arguments]``
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from drivefeed.cli import main
from drivefeed.stores.directory import DirectoryStore

WORDS, SIZE = Path(sys.argv.pop(1)).read_text(encoding="utf-8"), int(sys.argv.pop(1))
_put = DirectoryStore.put


async def _broken(self: DirectoryStore, key: str, chunks: Any, **facts: Any) -> Any:
    if facts.get("size") == SIZE:
        raise RuntimeError(WORDS)
    return await _put(self, key, chunks, **facts)


DirectoryStore.put = _broken  # type: ignore[method-assign]
main()
