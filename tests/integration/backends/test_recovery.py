"""After a restore: versions at other backends are looked up there, and what is gone comes again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from drivefeed.backends.http import HttpBackend
from drivefeed.backends.place import Place
from drivefeed.backends.signing import Credential
from drivefeed.catalog import restoring
from drivefeed.catalog.engine import open_catalog, sqlite_url
from drivefeed.domain.identity import idempotency_key, object_key
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.model import Policy
from drivefeed.outbound import Outbound
from drivefeed.ports import Submission
from drivefeed.services.checkups.finding import Colour
from drivefeed.services.checkups.keeping import recovery_findings
from drivefeed.services.recovery import Recovery
from drivefeed.services.recovery_elsewhere import PATIENCE_MS
from drivefeed.stages.backends import Backends
from drivefeed.stores.directory import DirectoryStore
from support.clock import CountedIds, ManualClock, no_checkpoint
from support.sample_backend import SECRET, sample, served
from support.waiting import until
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.catalog.restoring import Restored
    from drivefeed.domain.model import Import

TEXT = b"Calibration is done twice a year."


class NoPoints:
    """Our own index, of which nothing is asked here: all is with the other backend."""

    async def rounds(self) -> AsyncIterator[tuple[str, int, bool, int]]:
        for nothing in ():
            yield nothing

    async def count(self, *, import_id: str, round_: int) -> int:
        raise AssertionError((import_id, round_))

    async def remove(self, *, import_id: str, round_: int) -> int:
        raise AssertionError((import_id, round_))

    async def tidy(self) -> int:
        return 0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def rig(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Rig]:
    catalog = await open_catalog(
        sqlite_url(tmp_path / "catalog.db"), clock=clock, ids=CountedIds(), checkpoint=no_checkpoint
    )
    made = await Rig.make(catalog)
    await made.connect("docs", Policy(backend="sample"))
    await made.scan()
    await made.enumerate([ROOT, folder("docs"), *(file(name, "docs") for name in "abc")])
    yield made
    await catalog.aclose()


class Town:
    """Three files that the sample backend made searchable, and a catalog that was restored."""

    def __init__(self, rig: Rig, home: Path, url: str, sampled: Any) -> None:
        self.rig = rig
        self.sampled = sampled
        self.store = DirectoryStore(home / "objects")
        self.other = HttpBackend(
            Place("sample", url, Credential(SECRET, "bearer"), by_url=False, timeout_seconds=10.0),
            address=cast("Any", None),
            outbound=Outbound(),
            clock=cast("ManualClock", rig.catalog.clock),
            ids=CountedIds(),
        )

    async def import_all(self) -> None:
        for item in "abc":
            one = await self.rig.import_of(item)
            key = object_key(one.org_id, one.document_id, one.import_id, one.round)

            async def pieces() -> AsyncIterator[bytes]:
                yield TEXT

            await self.store.put(key, pieces(), content_type="text/plain", size=len(TEXT))
            facts = {"size": len(TEXT), "sha256": item, "integrity": "verified"}
            one = await self.rig.advance(one, Event.STORED, facts=facts)
            one = await self.rig.advance(one, Event.SUBMITTING, facts={"backend": "sample"})
            job_id = await self.other.submit(_submission(one, key))

            async def ended(job_id: str = job_id) -> bool:
                return (await self.other.status(job_id)).pages is not None

            await until(ended)
            one = await self.rig.advance(one, Event.ACCEPTED, facts={"backend_job": job_id})
            facts = {"pages": 1, "chunks": 1, "shown": True}
            await self.rig.advance(one, Event.SETTLED, facts=facts)

    async def restore(self, clock: ManualClock) -> Recovery:
        """Mark the catalog as restored; the drive has caught up since."""
        await restoring.mark_restored(self.rig.catalog, epoch="one")
        found = await self.restored()
        await restoring.begin_anew(self.rig.catalog, found)
        clock.turn(seconds=1)
        await self.rig.round([])
        clock.turn(seconds=1)
        return Recovery(
            self.rig.catalog,
            self.store,
            NoPoints(),
            cast("Any", None),
            owner="us",
            backends=Backends(None, {"sample": self.other}),
        )

    async def restored(self) -> Restored:
        found = await restoring.restored(self.rig.catalog)
        assert found is not None
        return found

    async def states(self) -> dict[str, tuple[State, int]]:
        found = {item: await self.rig.import_of(item) for item in "abc"}
        return {item: (one.state, one.round) for item, one in found.items()}


def _submission(one: Import, key: str) -> Submission:
    return Submission(
        key=idempotency_key(one.import_id, one.round),
        org_id=one.org_id,
        document_id=one.document_id,
        import_id=one.import_id,
        round=one.round,
        seq=1,
        object_key=key,
        size=len(TEXT),
        name="a.txt",
        media_type="text/plain",
        source="drive",
        folders=("docs",),
    )


@pytest.fixture
async def town(rig: Rig, tmp_path: Path) -> AsyncIterator[Town]:
    backend = sample.Backend(secret=SECRET, way="bearer", store=tmp_path / "objects")
    with served(backend) as url:
        made = Town(rig, tmp_path, url, backend)
        await made.import_all()
        yield made
        await made.other.aclose()
        await made.store.aclose()


async def test_what_another_backend_lost_is_imported_again_and_the_rest_is_left(
    town: Town, clock: ManualClock
) -> None:
    forgotten, removed, kept = [await town.rig.import_of(item) for item in "abc"]
    town.sampled.rows("DELETE FROM jobs WHERE import_id = ?", forgotten.import_id)
    await town.other.remove(
        document_id=removed.document_id, import_id=removed.import_id, round_=removed.round
    )
    recovery = await town.restore(clock)
    await recovery.tick()
    assert (await town.restored()).done_at is None
    states = await town.states()
    assert states["c"] == (State.SETTLED, 1)
    assert {states["a"][0], states["b"][0]} == {State.WITHDRAWING}
    await recovery.tick()
    done = await town.restored()
    assert done.done_at is not None
    (words,) = done.elsewhere
    assert words.startswith("3 versions at other backends looked up by key; ")
    findings = list(recovery_findings(done, now=clock.now()))
    assert [one.colour for one in findings] == [Colour.GREEN, Colour.GREEN]
    assert (await town.rig.import_of("c")).import_id == kept.import_id


async def test_a_backend_that_cannot_be_asked_is_waited_for_and_then_told_of(
    town: Town, clock: ManualClock
) -> None:
    recovery = await town.restore(clock)
    town.sampled.secret = "another-secret-of-the-tests"
    await recovery.tick()
    assert (await town.restored()).done_at is None
    clock.turn(ms=PATIENCE_MS - 60_000)
    await recovery.tick()
    assert (await town.restored()).done_at is None
    clock.turn(ms=120_000)
    await recovery.tick()
    done = await town.restored()
    assert done.done_at is not None
    (words,) = done.elsewhere
    assert words.startswith("3 versions at the backend 'sample' not compared: ")
    assert set((await town.states()).values()) == {(State.SETTLED, 1)}
    findings = list(recovery_findings(done, now=clock.now()))
    assert [one.colour for one in findings] == [Colour.GREEN, Colour.YELLOW]
