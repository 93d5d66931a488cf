"""What an index was made for: provider, model and dimension of its vectors, the sparse encoder.

Vectors of two models do not compare, so an index made for one refuses to be opened for another.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.vectors.bm25 import ENCODER
from drivefeed.indexer.vectors.payload import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


FIRST_PROVIDER: Final = "local"
"""Whose vectors an index holds that was made before it was remembered."""
_EMBEDDING: Final = ("provider", "model", "dimension")


@dataclass(frozen=True, slots=True)
class Identity:
    """The facts two openings of one index must agree on."""

    model: str
    dimension: int
    provider: str = FIRST_PROVIDER
    sparse: str = ENCODER
    schema: int = SCHEMA

    def as_mapping(self) -> dict[str, Any]:
        """Return the identity as plain JSON values."""
        return asdict(self)

    def require(self, found: Mapping[str, Any], where: str) -> None:
        """Check that an index was made for this identity.

        Raises:
            NeedsAttention: it was made for another; the sentence names both.
        """
        wanted = self.as_mapping()
        found = {"provider": FIRST_PROVIDER, **found}
        differing = [name for name in wanted if found.get(name) != wanted[name]]
        if not differing:
            return
        if not set(differing).isdisjoint(_EMBEDDING):
            # A model is only told apart by all three.
            differing = [name for name in wanted if name in {*differing, *_EMBEDDING}]
        was = ", ".join(f"{name} {found.get(name)!r}" for name in differing)
        now = ", ".join(f"{name} {wanted[name]!r}" for name in differing)
        raise NeedsAttention(
            f"The vector index {where} was made with {was}, but the settings ask for {now}. "
            "Go back to the former setting; 'drivefeed reindex' changes the index to another "
            "while search goes on.",
            reason=Reason.MISCONFIGURED,
        )


def read(path: Path) -> dict[str, Any] | None:
    """Return the identity stored in a file, or None if there is no such file.

    Raises:
        NeedsAttention: the file is damaged.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        stored = None
    if not isinstance(stored, dict):
        raise NeedsAttention(
            f"The file {path}, which says what the vector index was made for, cannot be read. "
            "Restore the folder from a backup, or delete it and start again: 'drivefeed reindex "
            "--anew' then builds it from the copies in the store.",
            reason=Reason.MISCONFIGURED,
        )
    return stored


def write(path: Path, identity: Identity) -> None:
    """Store the identity so that it is there completely or not at all, also after a power cut."""
    temporary = path.with_suffix(".new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(identity.as_mapping(), file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
