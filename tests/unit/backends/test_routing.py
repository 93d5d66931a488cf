"""Which backend a file goes to, and what happens where there is none of that name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from drivefeed.backends.breaker import Breaker
from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.files import fetch
from drivefeed.domain.errors import Part
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.model import Policy
from drivefeed.domain.reasons import Reason
from drivefeed.ports import BackendState, BackendStatus, Stage
from drivefeed.stages.backends import Backends
from drivefeed.stages.breaker import Breakers
from drivefeed.stages.poll import Poll
from drivefeed.stages.runner import Runner
from drivefeed.stages.submit import Submit
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from support.offline import Job
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.domain.model import Import
    from drivefeed.ports import Submission
    from drivefeed.stages.stage import StageRun


class Recording:
    """As much of a backend as these tests ask."""

    def __init__(self, breaker: Breaker | None = None, status: BackendStatus | None = None) -> None:
        self.submitted: list[str] = []
        self._breaker = breaker
        self._status = status

    async def find(self, key: str) -> str | None:
        del key
        return None

    async def submit(self, submission: Submission) -> str:
        if self._breaker is not None:
            raise self._breaker.down("The backend 'inner' is not available.")
        self.submitted.append(submission.name)
        return "job-1"

    async def status(self, job_id: str) -> BackendStatus:
        assert self._status is not None, job_id
        return self._status


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def rig(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Rig]:
    catalog = await open_catalog(
        new_catalog(tmp_path / "catalog.db"),
        clock=clock,
        ids=CountedIds(),
        checkpoint=no_checkpoint,
    )
    made = await Rig.make(catalog)
    await made.connect("docs")
    await made.connect("sub", Policy(backend="inner"))
    files = [file("a", "docs"), file("b", "sub")]
    await made.enumerate([ROOT, folder("docs"), folder("sub", "docs"), *files])
    yield made
    await catalog.aclose()


async def stored(rig: Rig, item: str) -> Import:
    one = await rig.import_of(item)
    return await rig.advance(one, Event.STORED, facts={"sha256": item, "size": 10})


async def deliver(rig: Rig, stage: StageRun, one: Import, breakers: Breakers | None = None) -> None:
    breakers = breakers or Breakers(rig.catalog.clock, rig.catalog.ids)
    row = await rig.reminder(one.import_id)
    assert row["stage"] == stage.stage
    payload = {**json.loads(row["payload"]), "number": row["number"]}
    runner = Runner(rig.catalog, breakers, owner="test")
    await runner.bind(stage)(Job(Stage(row["stage"]), one.import_id, payload))


async def test_the_innermost_connection_says_which_backend(rig: Rig) -> None:
    named = {}
    for item in "ab":
        _, _, found = await fetch(rig.catalog, (await rig.import_of(item)).import_id)
        named[item] = found.backend
    assert named == {"a": "embedded", "b": "inner"}


async def test_a_version_goes_to_its_backend_and_remembers_it(rig: Rig) -> None:
    own, inner = Recording(), Recording()
    stage = Submit(rig.catalog, Backends(own, {"inner": inner}), deadline_ms=1_000)  # type: ignore[arg-type, dict-item]
    for item in "ab":
        await deliver(rig, stage, await stored(rig, item))
    assert (own.submitted, inner.submitted) == (["a.txt"], ["b.txt"])
    assert [(await rig.import_of(item)).backend for item in "ab"] == ["embedded", "inner"]


async def test_a_backend_that_is_not_in_the_settings_asks_a_person(rig: Rig) -> None:
    one = await stored(rig, "b")
    stage = Submit(rig.catalog, Backends(Recording()), deadline_ms=1_000)  # type: ignore[arg-type]
    await deliver(rig, stage, one)
    after = await rig.import_of("b")
    assert (after.state, after.attention) == (State.STORED, Reason.MISCONFIGURED)


async def test_one_backend_that_is_down_holds_its_own_files_only(
    rig: Rig, clock: ManualClock
) -> None:
    own, down = Recording(), Recording(Breaker(clock, CountedIds()))
    stage = Submit(rig.catalog, Backends(own, {"inner": down}), deadline_ms=1_000)  # type: ignore[arg-type, dict-item]
    breakers = Breakers(clock, CountedIds())
    b, a = await stored(rig, "b"), await stored(rig, "a")
    # The first delivery commits that it is about to submit, which makes it due once more.
    for _ in range(2):
        await deliver(rig, stage, b, breakers)
    held = await rig.import_of("b")
    assert (held.hold, held.attention) == (Reason.WAITING_FOR_BACKEND, None)
    assert breakers.wait_ms(Part.BACKEND) == 0
    await deliver(rig, stage, a, breakers)
    assert own.submitted == ["a.txt"]


async def test_what_the_backend_left_hidden_is_published(rig: Rig) -> None:
    """It saw a higher seq, and was then wanted again: the catalog says what is shown."""
    one = await stored(rig, "a")
    done = BackendStatus(BackendState.DONE, pages=1, chunks=1, live=False)
    backend = Recording(status=done)
    await deliver(rig, Submit(rig.catalog, Backends(backend), deadline_ms=1_000), one)  # type: ignore[arg-type]
    await deliver(rig, Poll(rig.catalog, Backends(backend)), one)  # type: ignore[arg-type]
    after = await rig.import_of("a")
    assert (after.state, after.shown) == (State.SETTLED, None)
    assert await rig.due(one.import_id) == ("publish", 0)
