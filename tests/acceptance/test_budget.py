"""Three processes spend one budget: as much as they may, never more, and changes first."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import redis

from support.processes import REPOSITORY, environment, until
from support.threaded_sim import threaded_sim
from support.valkey import valkey_server, valkey_url

if TYPE_CHECKING:
    from pathlib import Path

    from acceptance.conftest import Figure
    from graphsim.requestlog import Entry
    from graphsim.serving import GraphSim

__all__ = ["valkey_server", "valkey_url"]

SMALLEST = 1250
SHARE = 0.8
WORKERS = (7, 7, 6)


def start(sim: GraphSim, drive: str, url: str, link: str, scale: int) -> list[Any]:
    ends = sim.endpoints
    account = {
        "tenant_id": ends.tenant_id,
        "client_id": ends.client_id,
        "client_secret": ends.client_secret,
        "authority": ends.login_url,
        "graph_url": ends.graph_url,
        "ca_file": ends.ca_file,
    }
    found = []
    for number, workers in enumerate(WORKERS):
        wanted = {
            "redis": url, "account": account, "drive": drive, "workers": workers, "link": link,
            "per_minute": SMALLEST * scale, "share": SHARE, "follows": number == 0,
        }  # fmt: skip
        found.append(
            subprocess.Popen(
                [sys.executable, "-m", "support.budget_worker", json.dumps(wanted)],
                env=environment(PYTHONPATH=f"{REPOSITORY / 'src'}:{REPOSITORY / 'tests'}"),
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        )
    return found


def units_a_second(entries: list[Entry], begin: float, end: float) -> float:
    spent = sum(one.resource_units for one in entries if begin <= one.time < end)
    return spent / (end - begin)


@pytest.mark.parametrize(
    ("files", "scale", "changes"),
    [
        pytest.param(600, 3, 3, id="small"),
        pytest.param(
            50_000, 20, 10, id="whole", marks=[pytest.mark.soak, pytest.mark.timeout(1800)]
        ),
    ],
)
def test_three_processes_use_the_whole_share_and_no_more(
    *, files: int, scale: int, changes: int, valkey_url: str, figure: Figure, tmp_path: Path
) -> None:
    with threaded_sim(state=tmp_path) as sim, redis.Redis.from_url(valkey_url) as work:
        drive = sim.memory
        items = [drive.create_file(f"old {each:05}.txt", b"x" * 300).id for each in range(files)]
        for first in range(0, files, 1000):
            work.rpush("work", *items[first : first + 1000])
        sim.allowance.per_minute, sim.allowance.scale = SMALLEST, float(scale)
        link = f"{sim.endpoints.graph_url}/drives/{drive.id}/root/delta?token=latest"
        children = start(sim, drive.id, valkey_url, link, scale)
        try:
            until(lambda: int(work.get("started") or 0) == sum(WORKERS), seconds=90, what="start")
            until(lambda: work.get("link"), seconds=60, what="the first look")
            overtaken = [
                backfill_before(sim, drive, each, at=files * (each + 2) // (changes + 3), work=work)
                for each in range(changes)
            ]
            until(
                lambda: not work.llen("work"), seconds=1500, what="the backfill to end", pause=0.02
            )
            end = sim.app.clock.now()
            for child in children:
                assert child.wait(120) == 0, child.stderr.read().decode()[-3000:]
        finally:
            for child in children:
                child.kill()
                child.wait()
                child.stderr.close()
        log = list(sim.log)
        began = [one.time for one in log if one.op == "content"][len(items) // 10]
        used = units_a_second(log, began, end)
        ours = SMALLEST * scale * SHARE / 60
        figure("share of our units used while work waits:", f"{100 * used / ours:.1f} %")
        figure("backfill files before a change:", str(overtaken))
        assert not sim.log.during_penalty()
        assert [one.refused for one in sim.allowance.accounts.values()] == [0]
        assert used >= 0.95 * ours
        assert used <= 1.02 * ours
        assert max(overtaken) < 100


def backfill_before(sim: GraphSim, drive: Any, number: int, *, at: int, work: Any) -> int:
    """Change a file in the middle of the backfill; return how many others were begun before it."""
    content = lambda: sim.log.count("content")  # noqa: E731
    until(lambda: content() >= at, seconds=1500, what="the backfill to get on", pause=0.05)
    mark = sim.log.last
    item = drive.create_file(f"change {number}.txt", b"new")
    until(
        lambda: sim.log.count("content", since=mark, item=item.id),
        seconds=120, what="the change to be copied", pause=0.05,
    )  # fmt: skip
    since = sim.log.entries(since=mark, op="content")
    place = next(index for index, one in enumerate(since) if one.item == item.id)
    assert work.llen("work"), "the backfill still waits"
    return place
