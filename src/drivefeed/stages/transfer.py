"""Transfer: stream a file from the source into the object store, checked on the way."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from drivefeed.catalog import imports as catalog_imports
from drivefeed.catalog.ledger import OURS
from drivefeed.catalog.quota import Need
from drivefeed.catalog.reminders import LANE_FRESH
from drivefeed.domain.budget import Lane
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.converge import may_stand_for
from drivefeed.domain.errors import AlreadyExists, InUse, NotFound, Part, Transient
from drivefeed.domain.gate import OPEN
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason
from drivefeed.ports import Stage
from drivefeed.stages.imports import ImportStage, Task
from drivefeed.stages.outcome import Advance, Again, Outcome
from drivefeed.stages.refusing import gone, refuse_unwanted
from drivefeed.stages.sums import Sums, require_size

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.gate import Gate
    from drivefeed.ports import ObjectStore, Source
    from drivefeed.stages.imports import UsageOwner

    CountPages = Callable[[str, str], Awaitable[int | None]]

_OCTETS = "application/octet-stream"
_EDITED_AGAIN_MS = 5_000
_NO_ROOM_AGAIN_MS = 5_000
_IN_USE_AGAIN_MS = 15 * 60_000


class _LaterError(Exception):
    """The file cannot be copied now; ``outcome`` says when to try again."""

    def __init__(self, outcome: Again) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class Transfer(ImportStage):
    """Copies one version under a key that names import and round: nothing is overwritten.

    Args:
        gate: says whether downloads may begin; what is stored already goes on.
        count_pages: counts the pages of a stored file by its key and name, where that is cheap;
            asked only where there is a limit.
    """

    stage = Stage.TRANSFER
    parts = (Part.SOURCE, Part.STORE)
    waits_while_paused = True

    def __init__(
        self,
        catalog: Catalog,
        source: Source,
        store: ObjectStore,
        *,
        count_pages: CountPages | None = None,
        usage_owner: UsageOwner = lambda _: OURS,
        gate: Callable[[], Gate] = lambda: OPEN,
    ) -> None:
        super().__init__(catalog, usage_owner=usage_owner)
        self._gate = gate
        self._source = source
        self._store = store
        self._count_pages = count_pages

    async def work(self, task: Task) -> Outcome | None:
        """Copy the file, or adopt the object that a crash left complete."""
        if task.one.state is not State.DISCOVERED:
            return None
        not_now = await self._not_now(task)
        if not_now is not None:
            return not_now
        if not await self.has_pages(task):
            return None
        await refuse_unwanted(self._source, self._store, task)
        try:
            sums, integrity = await self._checked_bytes(task)
        except _LaterError as later:
            return later.outcome
        sha256 = sums.sha256.hexdigest()
        facts = {"size": sums.size, "sha256": sha256, "integrity": integrity}
        twin = await self._twin(task, sha256)
        if twin is not None:
            return Advance(
                Event.SAME_BYTES,
                facts,
                reason=Reason.SAME_BYTES,
                same_as=twin,
                detail=f"the same bytes as version {twin}",
            )
        detail = f"{sums.size} bytes under {task.object_key}"
        return Advance(Event.STORED, facts, detail=detail, need=await self._need(task))

    async def _not_now(self, task: Task) -> Again | None:
        """Return when to ask again in quiet hours, and without room; None to begin."""
        now = self.catalog.clock.now()
        quiet_until = task.file.quiet_until(now)
        if quiet_until is not None:
            return Again(quiet_until - now, hold=Reason.QUIET_HOURS)
        gate = self._gate()
        if gate.is_shut and await self._store.stat(task.object_key) is None:
            return Again(_NO_ROOM_AGAIN_MS, hold=gate.reason, detail=gate.words)
        return None

    async def _need(self, task: Task) -> Need | None:
        """Return the pages that it needs now that it is stored."""
        if not task.file.is_limited or self.usage_owner(task) != OURS:
            return None
        counted = None
        if self._count_pages is not None:
            counted = await self._count_pages(task.object_key, task.file.name)
        return task.estimate if counted is None else Need(counted, counted=True)

    async def _checked_bytes(self, task: Task) -> tuple[Sums, str]:
        """Make sure that the object is there, and compare it with the listing.

        Bytes unlike the listed hash are fetched once more, since nothing else would tell of a
        transfer that went wrong in silence; what comes again, while the listing stands, is taken.

        Raises:
            _LaterError: the listing does not stand, or somebody has the file locked.
        """
        was_there = await self._store.stat(task.object_key) is not None
        sums = await self._bytes(task)
        integrity = _integrity(task, sums)
        if integrity != "server_modified":
            return sums, integrity
        is_edited = await self._was_edited(task)
        if is_edited or not was_there:
            with passing(self.checkpoint, "transfer.discard"):
                await self._store.delete(task.object_key)
        if is_edited:
            words = f"'{task.file.name}' was edited while it was copied"
            raise _LaterError(Again(_EDITED_AGAIN_MS, detail=words))
        if not was_there:
            sums = await self._bytes(task)
        return sums, _integrity(task, sums)

    async def _bytes(self, task: Task) -> Sums:
        """Make sure that the object is there, and return its sums."""
        if await self._store.stat(task.object_key) is not None:
            return await self._adopt(task)
        sums = Sums.empty()
        try:
            await self._copy(task, sums)
        except InUse as error:
            outcome = Again(_IN_USE_AGAIN_MS, hold=Reason.LOCKED_AT_SOURCE, detail=str(error))
            raise _LaterError(outcome) from error
        except NotFound as error:
            raise gone(task.file.name) from error
        except AlreadyExists:
            return await self._adopt(task)
        return sums

    async def _copy(self, task: Task, sums: Sums) -> None:
        file = task.file
        if file.drive is None or file.item_id is None:
            raise Transient(f"'{file.name}' has no place in a drive to be copied from.")
        async with AsyncExitStack() as stack:
            with passing(self.checkpoint, "transfer.download"):
                body = await stack.enter_async_context(
                    self._source.at(_lane(task)).download(file.drive, file.item_id)
                )
            require_size(body.size, file.most_bytes)
            with passing(self.checkpoint, "transfer.put"):
                await self._store.put(
                    task.object_key,
                    sums.watch(body.chunks(), file.most_bytes),
                    content_type=file.media_type or _OCTETS,
                    size=body.size,
                )

    async def _adopt(self, task: Task) -> Sums:
        sums = Sums.empty()
        async for _ in sums.watch(self._store.read(task.object_key)):
            pass
        return sums

    async def _was_edited(self, task: Task) -> bool:
        """Whether the source no longer lists the version that was to be copied."""
        file = task.file
        if file.drive is None or file.item_id is None:
            return False
        try:
            item = await self._source.at(_lane(task)).item(file.drive, file.item_id)
        except NotFound:
            return True
        return item.quick_xor is not None and item.quick_xor != task.one.quick_xor

    async def _twin(self, task: Task, sha256: str) -> str | None:
        """Another version of the document with the same bytes that is still in use."""
        known = await catalog_imports.siblings(self.catalog, task.document.document_id)
        for other in known.values():
            is_other = other.import_id != task.one.import_id
            if is_other and other.sha256 == sha256 and may_stand_for(other):
                return other.import_id
        return None


def _lane(task: Task) -> Lane:
    """Return how urgent the requests for a file are."""
    if task.delivery.attempt > 1:
        return Lane.RETRIES
    return Lane.CHANGES if task.claim.lane == LANE_FRESH else Lane.BACKFILL


def _integrity(task: Task, sums: Sums) -> str:
    """Compare what arrived with what was listed for this version.

    SharePoint rewrites some Office files after an upload, so bytes that differ from the listed
    hash are accepted when they arrived whole and the listing stands, and marked (rclone#2036,
    abraunegg#205).
    """
    listed = task.one.quick_xor
    if listed is None:
        return "no_listed_hash"
    return "verified" if sums.quick_xor.base64digest() == listed else "server_modified"
