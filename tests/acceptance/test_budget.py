"""Three processes spend one budget: as much as they may, never more, and changes first."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import redis

from drivefeed.domain.budget import Budget
from support.processes import REPOSITORY, environment, until
from support.threaded_sim import threaded_sim
from support.valkey import valkey_server, valkey_url

if TYPE_CHECKING:
    from pathlib import Path

    from acceptance.conftest import Figure
    from graphsim.serving import GraphSim

__all__ = ["valkey_server", "valkey_url"]

SMALLEST = 1250
WORKERS = (7, 7, 6)


def start(sim: GraphSim, drive: str, url: str, link: str, budget: Budget) -> list[Any]:
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
            "per_minute": budget.minute, "share": budget.share, "follows": number == 0,
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


@pytest.mark.parametrize(
    ("files", "scale", "share", "changes"),
    [
        pytest.param(600, 2, 0.8, 3, id="small", marks=pytest.mark.soak),
        pytest.param(
            # Two cores do about a hundred downloads a second, graphsim's side of them included.
            *(50_000, 20, 0.2, 10),
            id="whole",
            marks=[pytest.mark.soak, pytest.mark.timeout(1800)],
        ),
    ],
)
def test_three_processes_use_the_whole_share_and_no_more(
    *,
    files: int,
    scale: int,
    share: float,
    changes: int,
    valkey_url: str,
    figure: Figure,
    tmp_path: Path,
) -> None:
    with threaded_sim(state=tmp_path) as sim, redis.Redis.from_url(valkey_url) as work:
        drive = sim.memory
        items = [drive.create_file(f"old {each:05}.txt", b"x" * 300).id for each in range(files)]
        for first in range(0, files, 1000):
            work.rpush("work", *items[first : first + 1000])
        sim.allowance.per_minute, sim.allowance.scale = SMALLEST, float(scale)
        link = f"{sim.endpoints.graph_url}/drives/{drive.id}/root/delta?token=latest"
        budget = Budget(SMALLEST * scale, share=share)
        children = start(sim, drive.id, valkey_url, link, budget)
        try:
            until(lambda: int(work.get("started") or 0) == sum(WORKERS), seconds=90, what="start")
            until(lambda: work.get("link"), seconds=60, what="the first look")
            overtaken = [
                backfill_before(
                    sim, drive, each, left=files * (changes - each + 1) // (changes + 3), work=work
                )
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
        began = [one.time for one in log if one.op == "content"][files // 10]
        spent = sum(one.resource_units for one in log if began <= one.time < end)
        ours = (end - began) * budget.our_minute / 60
        figure("share of our units used while work waits:", f"{100 * spent / ours:.1f} %")
        figure("backfill files before a change:", str(overtaken))
        assert not sim.log.during_penalty()
        assert [one.refused for one in sim.allowance.accounts.values()] == [0]
        assert 0.95 * ours <= spent <= ours + budget.burst + 1
        assert max(overtaken) < 100


def backfill_before(sim: GraphSim, drive: Any, number: int, *, left: int, work: Any) -> int:
    """Change a file in the middle of the backfill; return how many others were begun before it.

    Args:
        left: files of the backfill that wait when the file changes.
    """
    until(lambda: work.llen("work") <= left, seconds=1500, what="the backfill to get on")
    mark = sim.log.last
    item = drive.create_file(f"change {number}.txt", b"new")
    until(lambda: item.id in drive.downloaded, seconds=120, what="the change to be copied")
    since = sim.log.entries(since=mark, op="content")
    assert work.llen("work"), "the backfill still waits"
    return next(index for index, one in enumerate(since) if one.item == item.id)
