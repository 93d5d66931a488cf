"""Publish: make the index show, hide or place what the catalog says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.catalog.files import placed
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import Part
from drivefeed.domain.lifecycle import Event, State
from drivefeed.ports import Stage
from drivefeed.stages.imports import ImportStage, Task
from drivefeed.stages.outcome import Advance, Outcome

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.stages.backends import Backends


class Publish(ImportStage):
    """Carries the live flag, the name and the folders of a document to the index."""

    stage = Stage.PUBLISH
    parts = (Part.BACKEND,)

    def __init__(self, catalog: Catalog, backends: Backends) -> None:
        super().__init__(catalog)
        self._backends = backends

    async def work(self, task: Task) -> Outcome | None:
        """Update the index, then record what it shows."""
        one = task.one
        if one.state is not State.SETTLED:
            return None
        backend = self._backends.named(one.backend)
        is_live = one.as_live == task.document.live
        if one.shown != is_live:
            with passing(self.checkpoint, "publish.live"):
                await backend.set_live(
                    document_id=one.document_id,
                    import_id=one.import_id,
                    round_=one.round,
                    live=is_live,
                )
        if task.document.misplaced:
            with passing(self.checkpoint, "publish.place"):
                await backend.set_folders(
                    document_id=one.document_id, name=task.file.name, folders=task.file.folders
                )
            await placed(self.catalog, one.document_id, task.file)
        return Advance(
            Event.PUBLISHED,
            {"shown": is_live},
            reason=None if is_live else task.document.unwanted_reason,
            detail="shown" if is_live else "hidden",
        )
