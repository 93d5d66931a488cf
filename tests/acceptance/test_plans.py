"""A plan's numbers are what then happens, exactly; applying it twice changes nothing."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import func, select

from drivefeed.catalog.access_tables import audit_log
from drivefeed.catalog.control import matching_connections
from drivefeed.catalog.progress import progress_of
from drivefeed.catalog.tables import (
    connections,
    coverage,
    documents,
    drives,
    imports,
    items,
    reminders,
)
from drivefeed.cli.plan import tell_plan
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.model import Policy
from drivefeed.domain.plan import Emptiness
from drivefeed.domain.policies import policy_of
from drivefeed.domain.reasons import Reason
from drivefeed.domain.scope import ending
from drivefeed.services.plan import apply_plan, plan_change, plan_connection
from drivefeed.settings_folders import TenantSettings
from graphsim.serving import serve
from support.offline import Offline, offline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.domain.plan import Plan
    from graphsim.serving import GraphSim

NOW = 1_800_000_000_000


class Library:
    """A library in graphsim's memory: three folders of small files, and some that are skipped."""

    def __init__(self, sim: GraphSim) -> None:
        self.drive = sim.memory
        make = self.drive.create_folder
        self.contracts = make("Contracts").id
        self.drafts = make("drafts", self.contracts).id
        self.minutes = make("Minutes").id
        self.empty = make("Empty").id
        for number in range(7):
            shared = {"shared": {"scope": "users"}} if number < 2 else {}
            self.drive.create_file(
                f"Contract {number}.txt", b"a" * (100 + number), self.contracts, **shared
            )
        for number in range(4):
            self.drive.create_file(f"Draft {number}.md", b"draft" * 900, self.drafts)
        self.drive.create_file("Tool.exe", b"MZ" * 9, self.contracts)
        self.drive.create_file("Blank.txt", b"", self.contracts)
        self.drive.create_file("Huge.txt", b"h" * 20_000, self.contracts)
        self.drive.create_file("Bad.txt", b"bad", self.contracts, malware={})
        self.drive.create_package("Notebook", self.contracts)
        for number in range(5):
            self.drive.create_file(f"{number}.md", b"# Minutes %d" % number, self.minutes)
        for number in range(3):
            self.drive.create_file(f"Top {number}.csv", b"a,b\n%d,2\n" % number)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where simulators keep certificates, so that they are made once."""
    return tmp_path_factory.mktemp("sim")


@pytest.fixture
async def sim(state: Path) -> AsyncIterator[GraphSim]:
    async with serve(profile="documentLibrary", state=state, page_size=10) as sim:
        yield sim


@pytest.fixture
def library(sim: GraphSim) -> Library:
    return Library(sim)


@pytest.fixture
async def here(sim: GraphSim, library: Library, tmp_path: Path) -> AsyncIterator[Offline]:
    async with offline(sim, tmp_path / "data") as here:
        yield here


async def plan_of(here: Offline, library: Library, root: str, **options: Any) -> Plan:
    policy = policy_of(options, now=NOW)
    return await plan_connection(here.parts, here.account_id, library.drive.id, root, policy)


async def happened(here: Offline, connection_id: str) -> dict[str, Any]:
    """What a connection has brought, in the terms of a plan, from rows alone."""
    async with here.parts.catalog.read() as connection:
        rows = await connection.execute(
            select(coverage.c.admitted, coverage.c.reason, items.c.name, items.c.size)
            .join(connections, connections.c.id == coverage.c.connection_id)
            .join(
                items,
                (items.c.item_id == coverage.c.item_id)
                & (items.c.drive_id == connections.c.drive_id),
            )
            .where(coverage.c.connection_id == connection_id)
        )
        found = list(rows)
    admitted = [row for row in found if row.admitted]
    return {
        "found": len(found),
        "files": len(admitted),
        "size": sum(row.size for row in admitted),
        "types": Counter(ending(row.name) for row in admitted),
        "skipped": Counter(row.reason for row in found if not row.admitted),
    }


def planned(plan: Plan) -> dict[str, Any]:
    return {
        "found": plan.found,
        "files": plan.files,
        "size": plan.size,
        "types": Counter({one.ending: one.files for one in plan.types}),
        "skipped": Counter({str(one.reason): one.files for one in plan.skipped}),
    }


async def everything(here: Offline) -> dict[str, list[dict[str, Any]]]:
    """All rows that applying could touch."""
    tables = (drives, connections, coverage, documents, imports, reminders, audit_log)
    return {table.name: await here.rows(table) for table in tables}


async def live(here: Offline) -> int:
    return len(await here.rows(documents, documents.c.live_import_id.is_not(None)))


async def test_a_plan_reckons_with_what_its_account_may_spend_in_its_tenant(
    here: Offline, library: Library, sim: GraphSim
) -> None:
    settings = here.parts.settings
    usual = await plan_of(here, library, library.minutes)
    assert (usual.units, usual.minutes) == (5, 5 / (settings.ru_per_minute * settings.ru_share))
    settings.tenants[sim.endpoints.tenant_id] = TenantSettings(ru_per_minute=10)
    plan = await plan_of(here, library, library.minutes)
    assert (plan.units, plan.minutes) == (5, 5 / (10 * settings.ru_share))


async def test_plans_of_three_folders_are_what_then_happens(
    here: Offline, library: Library, sim: GraphSim, figure: Any
) -> None:
    """The third folder holds the first two: what is here already costs no second download."""
    roots = {
        "Contracts": (library.contracts, {"max_size": "10 kB", "exclude": ["*0.txt"]}),
        "Minutes": (library.minutes, {}),
        "Everything": (library.drive.tree.root_id, {"max_size": "10 kB"}),
    }
    told = {}
    for name, (root, options) in roots.items():
        mark = sim.log.last
        plan = await plan_of(here, library, root, **options)
        assert not sim.log.entries(since=mark, op="content"), "a plan downloaded something"
        second = await plan_of(here, library, root, **options)
        assert replace(second, listed_at=plan.listed_at) == plan
        connection_id = await apply_plan(here.parts, plan, name=name, actor="test")
        mark = sim.log.last
        await here.play()
        await here.make_searchable()
        assert planned(plan) == await happened(here, connection_id)
        fetched = sim.log.entries(since=mark, op="content")
        assert len(fetched) == plan.units == plan.files - plan.present
        told[name] = plan

        before = await everything(here)
        again = await plan_of(here, library, root, **options)
        assert again.change is not None
        assert (again.change.options, again.change.added, again.change.removed) == ((), 0, 0)
        assert again.units == 0
        assert await apply_plan(here.parts, again, name=name, actor="test") == connection_id
        assert await everything(here) == before | {"drives": await here.rows(drives)}
        await here.play()
        figure(f"plan of {name}:", f"{plan.files} of {plan.found} files, {plan.units} downloads")

    contracts, minutes, whole = told.values()
    assert (contracts.files, contracts.shared, contracts.labelled) == (10, 1, None)
    assert planned(contracts)["skipped"] == {
        "unsupported_type": 1,
        "empty_file": 1,
        "larger_than_limit": 1,
        "excluded_by_filter": 1,
        "malware": 1,
        "package": 1,
    }
    assert contracts.folder == "Contracts"
    assert contracts.first[0] == "Contract 1.txt"
    assert contracts.first[-1] == "drafts/Draft 3.md"
    # Six of one page each, and four of 4,500 bytes.
    assert (contracts.pages, minutes.pages) == (6 + 4 * 2, 5)
    assert (minutes.files, minutes.skipped, minutes.present) == (5, (), 0)
    assert (whole.files, whole.present, whole.units) == (19, 15, 4)
    assert whole.folder == ""


async def test_two_filter_changes_are_what_then_happens(here: Offline, library: Library) -> None:
    root = library.contracts
    first = await plan_of(here, library, root, types=["txt"], max_size="10 kB")
    await apply_plan(here.parts, first, name="Contracts", actor="test")
    await here.play()
    await here.make_searchable()
    (known,) = await matching_connections(here.parts.catalog, "contracts")
    assert await live(here) == first.files == 7

    # More types and fewer names: +4 -1.
    policy = policy_of({"types": ["txt", "md"], "exclude": ["*6.txt"]}, now=NOW, base=known.policy)
    plan = await plan_change(here.parts, known, policy)
    assert plan.change is not None
    assert (plan.change.added, plan.change.removed, plan.change.hidden) == (4, 1, 1)
    assert (plan.change.kept, plan.change.braked) == (0, False)
    assert [name for name, _, _ in plan.change.options] == ["exclude", "types"]
    before = await here.rows(coverage, coverage.c.admitted)
    assert len(before) == 7, "a plan changed something"
    await apply_plan(here.parts, plan, name="Contracts", actor="jane")
    await here.play()
    assert await live(here) == 7 - plan.change.hidden
    await here.make_searchable()
    assert planned(plan) == await happened(here, known.connection_id)
    assert await live(here) == 7 - 1 + 4 == plan.files

    # A second connection wants two of those that the next change lets go.
    drafts = await plan_of(here, library, library.drafts, include=["*0.md", "*1.md"])
    await apply_plan(here.parts, drafts, name="Drafts", actor="test")
    await here.play()
    (known,) = await matching_connections(here.parts.catalog, "contracts")
    policy = policy_of({"subfolders": "no", "exclude": "none"}, now=NOW, base=known.policy)
    plan = await plan_change(here.parts, known, policy)
    assert plan.change is not None
    assert (plan.change.added, plan.change.removed) == (1, 4)
    assert (plan.change.hidden, plan.change.kept, plan.change.braked) == (2, 2, False)
    await apply_plan(here.parts, plan, name="Contracts", actor="jane")
    await here.play()
    # What an earlier change hid is not erased yet.
    assert plan.change.returning == 1
    assert await live(here) == 10 - plan.change.hidden + plan.change.returning
    await here.make_searchable()
    assert planned(plan) == await happened(here, known.connection_id)
    assert await live(here) == 7 + 2

    before_second = await everything(here)
    again = await plan_change(here.parts, replace(known, policy=policy), policy)
    await apply_plan(here.parts, again, name="Contracts", actor="jane")
    assert await everything(here) == before_second | {"drives": await here.rows(drives)}
    log = await here.rows(audit_log, audit_log.c.subject_id == known.connection_id)
    assert [row["action"] for row in log] == [
        "connection.added",
        "connection.changed",
        "connection.changed",
    ]
    assert [row["actor"] for row in log] == ["test", "jane", "jane"]


async def test_a_filter_on_permissions_tells_what_leaves_and_that_leaves(
    here: Offline, library: Library, sim: GraphSim
) -> None:
    private = [one for one in library.drive.tree.items.values() if one.name[:3] in {"0.m", "1.m"}]
    for one in private:
        library.drive.set_permissions(one.id, [{"roles": ["read"], "link": {}}])
    first = await plan_of(here, library, library.minutes)
    await apply_plan(here.parts, first, name="Minutes", actor="test")
    await here.play()
    await here.make_searchable()
    assert (await live(here), sim.log.count("permissions")) == (5, 0)

    (known,) = await matching_connections(here.parts.catalog, "minutes")
    policy = policy_of({"own_permissions": "exclude"}, now=NOW, base=known.policy)
    plan = await plan_change(here.parts, known, policy)
    assert plan.change is not None
    assert (plan.change.added, plan.change.removed, plan.change.hidden) == (0, 2, 2)
    assert planned(plan)["skipped"] == {"own_permissions": 2}
    await apply_plan(here.parts, plan, name="Minutes", actor="jane")
    await here.play()
    assert planned(plan) == await happened(here, known.connection_id)
    assert (await live(here), sim.log.count("permissions")) == (3, 5)


async def test_a_change_that_the_brake_stops_says_so_and_is_stopped(
    here: Offline, library: Library
) -> None:
    plan = await plan_of(here, library, library.contracts, brake_floor=3, max_size="10 kB")
    await apply_plan(here.parts, plan, name="Contracts", actor="test")
    await here.play()
    await here.make_searchable()
    (known,) = await matching_connections(here.parts.catalog, None)
    policy = policy_of({"types": ["txt"]}, now=NOW, base=known.policy)
    plan = await plan_change(here.parts, known, policy)
    assert plan.change is not None
    assert (plan.change.removed, plan.change.braked) == (4, True)
    await apply_plan(here.parts, plan, name="Contracts", actor="test")
    await here.play()
    (row,) = await here.rows(connections)
    assert row["attention"] == Reason.MASS_REMOVAL
    assert await live(here) == 11


async def test_nothing_found_nothing_permitted_and_nothing_eligible_are_three_things(
    here: Offline, library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = await plan_of(here, library, library.empty)
    assert (empty.found, empty.emptiness) == (0, Emptiness.NOTHING_FOUND)
    library.drive.annotate(library.empty, folder={"childCount": 3})
    hidden = await plan_of(here, library, library.empty)
    assert hidden.emptiness is Emptiness.NOTHING_PERMITTED
    unwanted = await plan_of(here, library, library.minutes, types=["pdf"])
    assert (unwanted.found, unwanted.files) == (5, 0)
    assert unwanted.emptiness is Emptiness.NOTHING_ELIGIBLE
    for plan, sentence in (
        (empty, "Nothing was found: 'Empty' may be read"),
        (hidden, "Nothing is permitted: whether 'Empty' holds files is not known"),
        (unwanted, "Nothing is eligible: 5 files are in 'Minutes', and the connection wants none"),
    ):
        tell_plan(plan)
        assert sentence in capsys.readouterr().out


async def test_two_plans_of_one_new_drive_at_the_same_time_list_it_once(
    here: Offline, library: Library, sim: GraphSim
) -> None:
    both = await asyncio.gather(
        plan_of(here, library, library.contracts), plan_of(here, library, library.minutes)
    )
    assert [one.files for one in both] == [12, 5]
    (drive,) = await here.rows(drives)
    assert (drive["generation"], drive["settling"], drive["enumerating"]) == (1, False, False)
    assert len({row["item_id"] for row in await here.rows(items)}) == 1 + 4 + 23 + 1


async def test_a_file_and_an_unknown_folder_cannot_be_planned(
    here: Offline, library: Library
) -> None:
    one = library.drive.create_file("Single.txt", b"single")
    with pytest.raises(NeedsAttention, match=r"'Single.txt' .* is no folder"):
        await plan_of(here, library, one.id)
    with pytest.raises(NeedsAttention, match="no folder with the id"):
        await plan_of(here, library, "01NOWHERE")


async def test_the_plan_is_the_fixed_denominator_of_progress(
    here: Offline, library: Library
) -> None:
    plan = await plan_of(here, library, library.minutes)
    connection_id = await apply_plan(here.parts, plan, name="Minutes", actor="test")
    (before,) = await progress_of(here.parts.catalog)
    assert (before.planned, before.since, before.percent) == (5, 0, 0)
    await here.play()
    await here.make_searchable()
    (done,) = await progress_of(here.parts.catalog)
    assert (done.planned, done.since, done.percent, done.waiting) == (5, 0, 100, 0)
    library.drive.create_file("Late.md", b"# Late", library.minutes)
    async with here.parts.catalog.write() as connection:
        await connection.execute(
            reminders.update()
            .where(reminders.c.stage == "discover")
            .values(due_at=1, sent_at=None, number=reminders.c.number + 1)
        )
    await here.play()
    (later,) = await progress_of(here.parts.catalog)
    assert (later.planned, later.since, later.waiting) == (5, 1, 1)
    assert later.percent == 83
    assert later.connection.connection_id == connection_id


async def test_quiet_hours_hold_transfers_and_nothing_else(
    here: Offline, library: Library, sim: GraphSim
) -> None:
    clock = here.parts.catalog.clock
    minute = clock.now() // 60_000
    window = "-".join(f"{(minute + m) // 60 % 24:02}:{(minute + m) % 60:02}" for m in (-30, 30))
    plan = await plan_of(here, library, library.minutes, quiet_hours=window)
    await apply_plan(here.parts, plan, name="Minutes", actor="test")
    await here.play()
    assert {row["hold"] for row in await here.rows(imports)} == {Reason.QUIET_HOURS}
    assert not sim.log.entries(op="content")
    until = {row["due_at"] for row in await here.rows(reminders, reminders.c.stage == "transfer")}
    assert all(0 < at - clock.now() <= 30 * 60_000 for at in until)


async def test_a_plan_of_a_connected_folder_counts_the_last_listing_where_graph_is_down(
    here: Offline, library: Library
) -> None:
    plan = await plan_of(here, library, library.minutes)
    await apply_plan(here.parts, plan, name="Minutes", actor="test")
    await here.play()
    here.parts.accounts.clear()
    (known,) = await matching_connections(here.parts.catalog, None)
    again = await plan_change(here.parts, known, Policy(types=("pdf",)))
    assert again.change is not None
    assert again.change.removed == 5
    (drive,) = await here.rows(drives)
    assert again.listed_at == drive["last_round_at"]
    assert await _count(here, documents) == 5


async def _count(here: Offline, table: Any) -> int:
    async with here.parts.catalog.read() as connection:
        return await connection.scalar(select(func.count()).select_from(table)) or 0
