"""Replies that get lost after the backend accepted: one job and one charge for each version.

The stages, the runner, the catalog, the client and the backend are real; between client and
backend stands a proxy that cuts connections once the backend has done what it was asked.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from drivefeed.backends.http import HttpBackend, Place
from drivefeed.backends.signing import Credential
from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.tables import imports
from drivefeed.catalog.usage_tables import ledger
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.model import Policy
from drivefeed.outbound import Outbound
from drivefeed.ports import Stage
from drivefeed.services.conformance.documents import serving
from drivefeed.stages.backends import Backends
from drivefeed.stages.breaker import Breakers
from drivefeed.stages.poll import Poll
from drivefeed.stages.runner import Runner
from drivefeed.stages.submit import Submit
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from support.cutting import cutting
from support.offline import Job
from support.sample_backend import SECRET, sample, served
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from drivefeed.stages.stage import StageRun

_MOST_STEPS = 200
_HOUR_MS = 3_600_000


class Turned(sample.Backend):  # type: ignore[misc] - it is loaded from its path
    """The sample backend by the test's clock."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        super().__init__(secret=SECRET)

    def now(self) -> int:
        return self.clock.now() // 1000


class Loser:
    """Loses the first replies to each submission, to each poll, and to some lookups of keys."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, asked: str, body: bytes) -> bool:
        name = f"{asked} {json.loads(body)['key']}" if body else asked
        self.seen[name] += 1
        if "?key=" in asked:
            return self.seen[name] == 1 and sum(map(ord, asked)) % 3 == 0
        return self.seen[name] == 1


async def bring_to_rest(
    rig: Rig,
    clock: ManualClock,
    runner: Runner,
    stages: Mapping[str, StageRun],
    import_id: str,
) -> None:
    """Deliver what is due of one import until nothing is."""
    for _ in range(_MOST_STEPS):
        row = await rig.reminder(import_id)
        if row["due_at"] is None:
            return
        clock.turn(ms=max(0, row["due_at"] - clock.now()))
        payload = {**json.loads(row["payload"]), "number": row["number"]}
        stage = stages[row["stage"]]
        await runner.bind(stage)(Job(Stage(row["stage"]), import_id, payload))
    raise AssertionError(f"not at rest: {await rig.reminder(import_id)}")


@pytest.mark.parametrize("files", [10, pytest.param(100, marks=pytest.mark.soak)])
async def test_lost_replies_make_neither_jobs_nor_charges(tmp_path: Path, files: int) -> None:
    clock, ids = ManualClock(), CountedIds()
    catalog = await open_catalog(
        new_catalog(tmp_path / "catalog.db"), clock=clock, ids=ids, checkpoint=no_checkpoint
    )
    backend, lose = Turned(clock), Loser()
    with served(backend) as upstream:
        async with (
            cutting(int(upstream.rpartition(":")[2]), lose) as proxy,
            serving("127.0.0.1") as documents,
        ):

            async def address(key: str) -> str:
                return documents.put(key, f"The text of {key}.".encode()).url

            acme = HttpBackend(
                Place("acme", proxy.url, Credential(SECRET)),
                address=address,
                outbound=Outbound(),
                clock=clock,
                ids=ids,
            )
            backends = Backends(acme, {"acme": acme})
            stages = {
                "submit": Submit(catalog, backends, deadline_ms=24 * _HOUR_MS),
                "poll": Poll(catalog, backends),
            }
            runner = Runner(catalog, Breakers(clock, ids), owner="test")
            rig = await Rig.make(catalog)
            await rig.connect(policy=Policy(backend="acme"))
            names = [f"file{number}" for number in range(files)]
            listed = [file(name, "docs", content=name) for name in names]
            await rig.enumerate([ROOT, folder("docs"), *listed])
            for name in names:
                one = await rig.import_of(name)
                await rig.advance(one, Event.STORED, facts={"sha256": name, "size": 10})
                await bring_to_rest(rig, clock, runner, stages, one.import_id)
            await acme.aclose()

    lost = Counter(one.partition("?")[0].rpartition("/")[0] or one for one in proxy.lost)
    submissions = [one for one in proxy.lost if one == "POST /v1/jobs"]
    polls = [one for one in proxy.lost if one.startswith("GET /v1/jobs/")]
    assert len(submissions) == files, lost
    assert len(polls) >= files, lost
    assert any("?key=" in one for one in proxy.lost), lost

    jobs = backend.rows("SELECT job_id, key, state FROM jobs")
    assert len(jobs) == files
    assert {row["state"] for row in jobs} == {"done"}
    rows = await rig.rows(imports)
    assert {row["state"] for row in rows} == {State.SETTLED}
    assert {row["backend"] for row in rows} == {"acme"}
    assert {row["backend_job"] for row in rows} == {row["job_id"] for row in jobs}
    charged = Counter(row["import_id"] for row in await rig.rows(ledger))
    assert charged == Counter(row["id"] for row in rows)
    assert await rig.pages_used() == files
    assert await rig.live() == set(names)
    await catalog.aclose()
