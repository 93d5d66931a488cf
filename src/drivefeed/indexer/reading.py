"""Stored files, read or counted in child processes over a local copy."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import NotFound, Part, PartDown, Permanent, Transient
from drivefeed.domain.scope import ending
from drivefeed.indexer.extract.count import COUNTED

if TYPE_CHECKING:
    from drivefeed.indexer.extract import ExtractionPool
    from drivefeed.indexer.model import Extraction, Limits
    from drivefeed.ports import Checkpoint, ObjectStore, Submission


class StoredFiles:
    """Reads what the object store holds.

    Args:
        limits: what one extraction may use.
        work_folder: where the local copies are made.
    """

    def __init__(
        self,
        store: ObjectStore,
        pool: ExtractionPool,
        limits: Limits,
        work_folder: Path,
        *,
        checkpoint: Checkpoint,
    ) -> None:
        self._store = store
        self._pool = pool
        self._limits = limits
        self._work_folder = work_folder
        self._checkpoint = checkpoint

    async def extract(self, sent: Submission) -> Extraction:
        """Read the text of what was submitted.

        Raises:
            Permanent: the file cannot be read.
            Transient, PartDown: as their docstrings say.
        """
        return await self._read(sent.object_key, sent.name, media_type=sent.media_type)

    async def count_pages(self, key: str, name: str) -> int | None:
        """Count the pages of a stored file; None where they are not told without reading it.

        A file that cannot be opened is no news for who only counts: the backend will say so.

        Raises:
            PartDown: as its docstring says.
        """
        if ending(name) not in COUNTED:
            return None
        try:
            counted = await self._read(key, name, only_count=True)
        except (Permanent, Transient):
            return None
        return counted.page_count or None

    async def _read(self, key: str, name: str, **wishes: Any) -> Extraction:
        folder = await asyncio.to_thread(self._new_folder)
        try:
            path = folder / "content"
            try:
                with passing(self._checkpoint, "index.fetch"):
                    await self._store.fetch(key, path)
            except NotFound as error:
                raise Transient(f"The bytes of '{name}' are not in the object store.") from error
            return await self._pool.extract(path, name=name, limits=self._limits, **wishes)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _new_folder(self) -> Path:
        try:
            return Path(tempfile.mkdtemp(prefix="index-", dir=self._work_folder))
        except OSError as error:
            raise PartDown(
                f"No folder can be made in {self._work_folder} to read files in: {error.strerror}.",
                part=Part.INDEX,
            ) from error
