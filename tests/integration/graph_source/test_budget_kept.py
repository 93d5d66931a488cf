"""What the source asks of Graph goes through the gate, at its price, and heeds the answers."""

import pytest

from drivefeed.domain.budget import Lane
from drivefeed.domain.errors import Throttled
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import DriveRef
from drivefeed.outbound import Outbound
from drivefeed.sources.graph import Gates, GraphSource, browse
from drivefeed.sources.graph.http import user_agent
from drivefeed.sources.graph.probe import probe
from graphsim.serving import GraphSim
from integration.graph_source.kit import (
    HurriedClock,
    PlainIds,
    RealClock,
    account_of,
    content,
    crawl,
    source_of,
)


async def test_what_we_count_is_what_microsoft_counts(sim: GraphSim, source: GraphSource) -> None:
    folder = sim.memory.create_folder("folder")
    item = sim.memory.create_file("a.txt", b"x", folder.id)
    drive = DriveRef("sim", sim.memory.id)
    _, link = await crawl(source, drive)
    await crawl(source, drive, link)
    await source.drive(drive)
    await source.item(drive, item.id)
    await content(source, drive, item.id)
    look = await source.look("sim")
    assert [page async for page in browse.children(look, sim.memory.id)]
    await browse.library_by_id(look, sim.memory.id)
    await probe(await source.client("sim"), drive_id=sim.memory.id)
    gate = source.gates.of(account_of(sim))
    assert (await gate.count()).used_day == sim.log.units() > 10


async def test_accounts_of_one_app_share_a_gate_and_others_do_not(sim: GraphSim) -> None:
    gates = Gates(HurriedClock(), PlainIds())
    one, two = account_of(sim), account_of(sim, account_id="two", tenant_id=sim_tenant(sim).upper())
    assert gates.of(one) is gates.of(two)
    assert gates.of(one) is not gates.of(account_of(sim, client_id="another"))
    assert gates.of(one) is not gates.of_sign_in(one)


def sim_tenant(sim: GraphSim) -> str:
    return sim.endpoints.tenant_id


async def test_it_stops_before_microsoft_refuses(sim: GraphSim, source: GraphSource) -> None:
    item = sim.memory.create_file("a.txt", b"x")
    sim.allowance.per_minute = 100
    drive = DriveRef("sim", sim.memory.id)

    async def many() -> None:
        for _ in range(200):
            await source.item(drive, item.id)

    with pytest.raises(Throttled) as caught:
        await many()
    assert 0 < caught.value.seconds <= 60
    assert [one.refused for one in sim.allowance.accounts.values()] == [0]
    assert 80 <= sim.log.units() <= 100, "the headers begin at 80"


async def test_a_throttled_probe_says_that_it_could_not_be_tried(
    sim: GraphSim,
) -> None:
    sim.memory.create_file("a.txt", b"x")
    sim.faults.add("throttle", op="delta", retry_after="600")
    source = source_of(account_of(sim), RealClock())
    try:
        found = await probe(await source.client("sim"), drive_id=sim.memory.id)
    finally:
        await source.aclose()
    assert found.verdict == "warning"
    last = next(one for one in found.checks if one.name == "changes")
    assert (last.ok, last.reason) == (None, Reason.THROTTLED)
    assert not any(one.ok is False for one in found.checks)


async def test_a_person_waits_through_a_short_throttle(
    sim: GraphSim, source: GraphSource, clock: HurriedClock
) -> None:
    await source.gates.of(account_of(sim)).close(40)
    found = await probe(await source.client("sim"), drive_id=sim.memory.id)
    assert not any(one.ok is False for one in found.checks if one.name != "clock")
    assert clock.slept[0] == 40


async def test_all_requests_carry_the_company_of_the_settings(sim: GraphSim) -> None:
    account = account_of(sim, outbound=Outbound(company="Contoso Ltd"))
    assert user_agent(account).startswith("NONISV|Contoso Ltd|drivefeed/")
    assert user_agent(account_of(sim)).startswith("NONISV|drivefeed|drivefeed/")
    source = source_of(account)
    try:
        client = await source.client("sim")
        assert client.hosts.headers["User-Agent"] == user_agent(account)
        assert client._http.headers["User-Agent"] == user_agent(account)
    finally:
        await source.aclose()


@pytest.mark.parametrize("lane", list(Lane))
async def test_a_view_of_the_source_takes_its_lane(
    sim: GraphSim, source: GraphSource, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = source.gates.of(account_of(sim))
    taken: list[Lane] = []
    enter = gate.enter

    async def noted(cost: int, wanted: Lane, *, patience: float = 5) -> None:
        taken.append(wanted)
        await enter(cost, wanted, patience=patience)

    monkeypatch.setattr(gate, "enter", noted)
    await crawl(source.at(lane), DriveRef("sim", sim.memory.id))
    assert set(taken) == {lane}
