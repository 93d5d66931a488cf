"""After a restore: store and index are made to agree with a catalog from an earlier time.

The restored catalog reads the changes of every drive again from its earlier position, and finds
objects and backend jobs of the time between by their names. What that does not bring together is
compared here once, when every drive has caught up:

* objects and points of rounds that the catalog does not know go;
* points that are gone are made again from the stored object, and are charged no more;
* a version whose object is gone is imported again, in a new round, and is charged no more;
* which points are shown, and where their documents lie, is told to the index once more;
* versions at other backends are looked up there, see :mod:`drivefeed.services.recovery_elsewhere`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from drivefeed.catalog import restoring
from drivefeed.catalog.audit import versions
from drivefeed.catalog.heartbeats import take_lease
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.identity import idempotency_key
from drivefeed.domain.lifecycle import State
from drivefeed.services.recovery_elsewhere import OtherBackends
from drivefeed.stages.backends import Backends
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from drivefeed.catalog.audit import Version
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.restoring import Restored
    from drivefeed.ports import ObjectStore, Queue, RoundRow

LEASE = "recovery"
TICK_SECONDS = 2.0
_LEASE_MS = 60_000
_HAVE_OBJECTS = frozenset({State.STORED, State.SUBMITTED, State.SETTLED})

_log = log("recovery")


class Rounds(Protocol):
    """The index, as far as a recovery needs it."""

    def rounds(self) -> AsyncIterator[RoundRow]:
        """Yield (import id, round, live, points) for everything in the index."""
        ...

    async def tidy(self) -> int:
        """Remove what is in a collection that its organization does not use; return how much."""
        ...

    async def count(self, *, import_id: str, round_: int) -> int:
        """Count the points of a round."""
        ...

    async def remove(self, *, import_id: str, round_: int) -> int:
        """Remove all points of a round; return how many there were."""
        ...


class Recovery:
    """Recovers from a restore, once; does nothing where there was none.

    Args:
        index: the embedded backend's index.
        backends: all backends; without them only our own index is compared.
        owner: names this process; of several, one recovers.
    """

    def __init__(
        self,
        catalog: Catalog,
        store: ObjectStore,
        index: Rounds,
        queue: Queue,
        *,
        owner: str,
        backends: Backends | None = None,
    ) -> None:
        self._catalog = catalog
        self._store = store
        self._index = index
        self._queue = queue
        self._owner = owner
        self._others = OtherBackends(catalog, backends or Backends(None))
        self._redone: set[str] = set()
        self._is_over = False

    async def begin(self) -> None:
        """Before anybody works: empty the queue and let everything be sent anew.

        Raises:
            PartDown: the queue does not answer.
        """
        one = await restoring.restored(self._catalog)
        if one is None or one.queue_cleared:
            return
        # Deliveries of the time between would swallow new ones of the same numbers.
        with passing(self._catalog.checkpoint, "queue.clear"):
            await self._queue.clear()
        await restoring.begin_anew(self._catalog, one)
        _log.warning("restored", at=one.at)

    async def tick(self) -> None:
        """Do the next piece of work, if there is any."""
        if self._is_over:
            return
        one = await restoring.restored(self._catalog)
        if one is None or one.done_at is not None:
            self._is_over = True
            return
        if not one.queue_cleared or await restoring.drives_behind(self._catalog, since=one.at):
            return
        if await take_lease(self._catalog, LEASE, self._owner, for_ms=_LEASE_MS) is None:
            return
        if await restoring.still_queued(self._catalog, self._redone):
            return
        self._redone = set()
        if not await self._compare() and await self._others_agree():
            await self._finish(one)

    async def _finish(self, one: Restored) -> None:
        after: str | None = ""
        while after is not None:
            after = await restoring.show_again(self._catalog, after=after)
        elsewhere = self._others.report()
        await restoring.mark_recovered(self._catalog, one, elsewhere)
        self._is_over = True
        _log.info("recovered", since=one.at, elsewhere=elsewhere)

    async def _others_agree(self) -> bool:
        """Ask other backends about some more versions; whether that is over and all were there."""
        return self._others.is_over or (await self._others.look() == 0 and self._others.is_over)

    async def _compare(self) -> bool:
        """Compare once and see to what differs; True where something has to be made again.

        What is outside is listed before the catalog is: a round that begins meanwhile is known.
        """
        objects = {one.key: one.size async for one in self._store.list("")}
        with passing(self._catalog.checkpoint, "recovery.points"):
            await self._index.tidy()
        points: Counter[tuple[str, int]] = Counter()
        async for import_id, round_, _, count in self._index.rounds():
            points[import_id, round_] += count
        bare: list[Version] = []
        async for one in versions(self._catalog):
            size = objects.pop(one.object_key, None)
            count = points.pop((one.import_id, one.round), 0)
            is_bare = one.state in _HAVE_OBJECTS and size != one.size
            # What another backend holds is asked of it.
            has_points = one.state is State.SETTLED and one.indexed_here
            if is_bare or (has_points and count != one.chunks):
                bare.append(one)
        # What is unknown goes before a new round is begun that would bear the same name.
        swept = await self._sweep(objects, points)
        again = [await self._make_again(one) for one in bare]
        _log.info("compared", again=sum(again), swept=swept)
        return bool(swept) or any(again)

    async def _sweep(self, objects: Iterable[str], points: Iterable[tuple[str, int]]) -> int:
        """Remove what no import of the catalog has; return how much that was."""
        swept = 0
        orgs = await restoring.known_orgs(self._catalog)
        for key in objects:
            org_id, _, rest = key.partition("/")
            import_id, _, round_ = rest.partition("/")[2].partition("/")
            # What does not begin with an organization of ours may be somebody else's.
            if org_id in orgs and round_.isdigit() and await self._is_free(import_id, int(round_)):
                with passing(self._catalog.checkpoint, "recovery.object"):
                    swept += await self._store.delete(key)
        for import_id, number in points:
            if await self._is_free(import_id, number):
                with passing(self._catalog.checkpoint, "recovery.points"):
                    swept += bool(await self._index.remove(import_id=import_id, round_=number))
        return swept

    async def _is_free(self, import_id: str, round_: int) -> bool:
        """Whether nothing uses a name; asked just before what bears it is removed."""
        return await restoring.present_round(self._catalog, import_id) != round_

    async def _make_again(self, one: Version) -> bool:
        """Make again what a round should have outside; False where it has it by now."""
        found = await self._store.stat(one.object_key)
        if found is None or found.size != one.size:
            return await self._import_again(one, "its object was gone after a restore")
        if one.state is not State.SETTLED or not one.indexed_here:
            return False
        count = await self._index.count(import_id=one.import_id, round_=one.round)
        return count != one.chunks and await self._index_again(one)

    async def _index_again(self, one: Version) -> bool:
        key = idempotency_key(one.import_id, one.round)
        job_id = await restoring.index_again(self._catalog, one.import_id, key)
        if job_id is None:
            return await self._import_again(one, "its points were gone after a restore")
        self._redone.add(job_id)
        return True

    async def _import_again(self, one: Version, detail: str) -> bool:
        return await restoring.import_again(self._catalog, one.import_id, one.round, detail=detail)
