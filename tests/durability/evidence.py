"""What is looked at when all is at rest: every invariant, and the drive itself byte for byte."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING
from unittest.mock import patch

from drivefeed.bootstrap import open_parts
from drivefeed.services.invariants import INVARIANTS, collect
from drivefeed.settings import load_settings
from support.evidence import objects_in, sha256
from support.processes import environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from drivefeed.services.invariants import Facts
    from durability.lives import Run

_LIVE = """
SELECT items.name, documents.org_id || '/' || documents.id || '/' || live_import_id || '/'
  || live_round AS key
FROM documents JOIN items USING (drive_id, item_id) WHERE live_import_id IS NOT NULL
"""


def facts_of(data: Path) -> Facts:
    """Collect the facts of a data folder on which nothing runs; all objects are read."""
    variables = environment(DRIVEFEED_CONFIG=str(data / "drivefeed.toml"))
    with patch.dict(os.environ, variables, clear=True):
        settings = load_settings(data_dir=data)

    async def read() -> Facts:
        async with open_parts(settings) as parts:
            return await collect(
                parts.catalog, parts.store, parts.index.rounds(), sample=None, old_ms=-60_000
            )

    return asyncio.run(read())


def broken_in(data: Path) -> list[str]:
    """Return a line for each thing that breaks an invariant."""
    facts = facts_of(data)
    return [f"{one.name}: {line}" for one in INVARIANTS for line in one.check(facts)]


def differing(run: Run, files: dict[str, Path]) -> Iterator[str]:
    """Yield the files whose live object does not have their bytes; drivefeed is not asked."""
    objects = objects_in(run.data)
    live = {row["name"]: row["key"] for row in run.rows(_LIVE)}
    for path in files.values():
        if path.suffix == ".txt" and (
            path.name not in live or sha256(objects[live[path.name]]) != sha256(path)
        ):
            yield f"{path.name}: its object has other bytes, or there is none"
    yield from (f"{name}: live, and not on the drive" for name in live if not _on(name, files))


def _on(name: str, files: dict[str, Path]) -> bool:
    return any(path.name == name for path in files.values())
