"""Forty connections from one file: planned, refused as a whole for one bad entry, applied once."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog.access_tables import audit_log
from drivefeed.catalog.control import set_paused
from drivefeed.catalog.sources import all_connections
from drivefeed.catalog.tables import connections, drives
from drivefeed.cli.context import os_user
from drivefeed.domain.declared import read_declared
from drivefeed.services.declaring import apply_declaration, plan_declared
from graphsim.serving import serve
from support.commands import run_command
from support.offline import Offline, offline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from acceptance.conftest import Figure
    from graphsim.serving import GraphSim

NOW = 1_800_000_000_000
HOST = "https://graphsim.sharepoint.invalid"
LIBRARIES = 20


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sim")


def furnish(sim: GraphSim) -> list[str]:
    """Make a site with twenty libraries of two folders each; return the libraries' drive ids."""
    site = sim.add_site("Archive")
    for number in range(1, LIBRARIES):
        sim.add_library(site, f"Shelf {number}")
    for drive in site.drives:
        for name in ("Books", "Maps"):
            folder = drive.create_folder(name)
            drive.create_file(f"{name}.txt", name.encode() * 9, folder.id)
    return [drive.id for drive in site.drives]


@pytest.fixture
async def sim(state: Path) -> AsyncIterator[GraphSim]:
    async with serve(profile="documentLibrary", state=state) as sim:
        yield sim


@pytest.fixture
async def here(sim: GraphSim, tmp_path: Path) -> AsyncIterator[Offline]:
    async with offline(sim, tmp_path / "data") as here:
        yield here


def file_of(drive_ids: list[str]) -> str:
    """Declare two folders of each library, in the three ways to name a place."""
    lines = ["[defaults]", 'account = "sim"', 'types = ["txt", "md"]', 'grace = "3 d"', ""]
    for number, drive_id in enumerate(drive_ids):
        lines += [
            "[[connections]]",
            f'name = "Books {number}"',
            f'drive_id = "{drive_id}"',
            'folder = "Books"',
            "",
            "[[connections]]",
            f'name = "Maps {number}"',
        ]
        if number == 0:
            lines += [f'url = "{HOST}/sites/Archive/Shared%20Documents/Maps"', ""]
        else:
            lines += [f'site = "{HOST}/sites/Archive"', f'library = "Shelf {number}"']
            lines += ['folder = "Maps"', 'exclude = ["~$*"]', ""]
    return "\n".join(lines)


async def everything(here: Offline) -> list[list[dict[str, Any]]]:
    return [await here.rows(table) for table in (drives, connections, audit_log)]


async def test_forty_connections_of_which_one_is_bad_and_then_none(
    here: Offline, sim: GraphSim, figure: Figure
) -> None:
    text = file_of(furnish(sim))
    bad = text.replace('folder = "Books"', 'folder = "Bokos"', 1)
    nothing = await everything(here)
    plan = await plan_declared(here.parts, bad)
    (problem,) = plan.problems
    assert (problem.line, problem.entry) == (9, "'Books 0'")
    assert "Bokos" in problem.sentence
    with pytest.raises(ValueError, match="problems"):
        await apply_declaration(here.parts, plan, actor="test")
    assert await everything(here) == nothing

    mark = sim.log.last
    plan = await plan_declared(here.parts, text)
    assert not plan.problems
    assert (len(plan.steps), sum(step.known is None for step in plan.steps)) == (40, 40)
    assert await everything(here) == nothing, "a plan changed something"
    figure("forty connections planned with", f"{sim.log.last - mark} requests")
    assert await apply_declaration(here.parts, plan, actor="test") == 40
    made = await here.rows(connections)
    assert len(made) == 40
    assert all(row["declared"] for row in made)
    assert len(await here.rows(drives)) == LIBRARIES
    assert len(await here.rows(audit_log)) == 40
    policies = [json.loads(row["policy"]) for row in made]
    assert all(one["types"] == ["txt", "md"] for one in policies)
    assert sum(one["exclude"] == ["~$*"] for one in policies) == LIBRARIES - 1

    applied = await everything(here)
    again = await plan_declared(here.parts, text)
    assert not any(step.is_news for step in again.steps)
    assert await apply_declaration(here.parts, again, actor="test") == 0
    assert await everything(here) == applied


async def test_changes_are_told_field_by_field_and_what_left_the_file_is_left_alone(
    here: Offline, sim: GraphSim
) -> None:
    ids = furnish(sim)[:2]
    text = file_of(ids)
    await apply_declaration(here.parts, await plan_declared(here.parts, text), actor="test")
    entries = text.split("[[connections]]")
    changed = "[[connections]]".join(entries[:-1]).replace(
        'name = "Books 1"', 'name = "Novels"\nmax_size = "1 MiB"\nmodified_since = "30 d"'
    )
    plan = await plan_declared(here.parts, changed)
    assert [one.name for one in plan.left] == ["Maps 1"]
    news = [step for step in plan.steps if step.is_news]
    assert [[change[0] for change in step.changes] for step in news] == [
        ["name", "max_size", "modified_since"]
    ]
    assert news[0].changes[0] == ("name", "Books 1", "Novels")
    assert await apply_declaration(here.parts, plan, actor="test") == 1
    left = {row["name"]: row for row in await here.rows(connections)}
    assert not left["Maps 1"]["paused"]
    assert left["Maps 1"]["declared"]

    plan = await plan_declared(here.parts, changed)
    assert not any(step.is_news for step in plan.steps), "an age was counted back anew"
    assert await apply_declaration(here.parts, plan, actor="test", prune=True) == 1
    left = {row["name"]: row for row in await here.rows(connections)}
    assert left["Maps 1"]["paused"]
    assert len(left) == 4, "pruning never erases"
    plan = await plan_declared(here.parts, changed)
    assert (plan.left, await apply_declaration(here.parts, plan, actor="test", prune=True)) == (
        (),
        0,
    )
    plan = await plan_declared(here.parts, text)
    (back,) = [step for step in plan.steps if step.is_news and step.wanted.name == "Maps 1"]
    assert ("paused", "yes, since it left the file", "no") in back.changes
    counted = await plan_declared(here.parts, text, count=True)
    back = next(step for step in counted.steps if step.wanted.name == "Books 1")
    assert back.wanted.plan is not None
    assert back.wanted.plan["files"] == 1


async def test_what_pruning_paused_is_resumed_when_it_is_declared_again(
    here: Offline, sim: GraphSim
) -> None:
    catalog = here.parts.catalog
    text = file_of(furnish(sim)[:2])
    await apply_declaration(here.parts, await plan_declared(here.parts, text), actor="test")
    found = {one.name: one for one in await all_connections(catalog)}
    await set_paused(catalog, found["Books 1"], paused=True, actor="a person")
    nothing = await plan_declared(here.parts, "")
    assert (len(nothing.left), nothing.declared_before, nothing.leaves_most) == (4, 4, True)
    assert await apply_declaration(here.parts, nothing, actor="test", prune=True) == 4
    pruned = {one.name: one for one in await all_connections(catalog)}
    assert all(one.paused for one in pruned.values())
    # Whoever pauses what is paused already has decided it.
    await set_paused(catalog, pruned["Maps 1"], paused=True, actor="a person")

    plan = await plan_declared(here.parts, text)
    assert await apply_declaration(here.parts, plan, actor="test") == 4
    now = {row["name"]: (row["paused"], row["pruned"]) for row in await here.rows(connections)}
    assert now == {
        **dict.fromkeys(("Books 0", "Maps 0"), (False, False)),
        **dict.fromkeys(("Books 1", "Maps 1"), (True, False)),
    }
    resumed = [row for row in await here.rows(audit_log) if row["action"] == "connection.resumed"]
    assert len(resumed) == 2
    again = await plan_declared(here.parts, text)
    assert not any(step.is_news for step in again.steps)
    assert not again.leaves_most


async def test_two_entries_for_one_folder_and_names_that_are_taken(
    here: Offline, sim: GraphSim
) -> None:
    (drive_id, other, *_) = furnish(sim)
    first = f'[[connections]]\nname = "A"\ndrive_id = "{drive_id}"\nfolder = "Books"\n'
    await apply_declaration(here.parts, await plan_declared(here.parts, first), actor="test")
    text = (
        first
        + first.replace('"A"', '"B"')
        + f'[[connections]]\ndrive_id = "{drive_id}"\nfolder = "Maps"\n'
        + f'[[connections]]\ndrive_id = "{other}"\nfolder = "Maps"\n'
        + f'[[connections]]\nname = "C"\naccount = "nobody"\ndrive_id = "{other}"\n'
    )
    told = [str(one) for one in (await plan_declared(here.parts, text)).problems]
    assert len(told) == 3
    assert told[0].startswith("line 5, entry 'B': It names the same folder")
    assert "as the entry in line 9" in told[1]
    assert told[2].startswith("line 17, entry 'C': There is no such thing as the account 'nobody'")
    taken = f'[[connections]]\nname = "a"\ndrive_id = "{other}"\nfolder = "Maps"\n'
    (problem,) = (await plan_declared(here.parts, taken)).problems
    assert "called 'a' already" in problem.sentence
    assert problem.line == 2


async def test_a_bad_option_hides_no_other_problem_of_its_entry(
    here: Offline, sim: GraphSim
) -> None:
    (drive_id, *_) = furnish(sim)
    entry = '[[connections]]\nname = "{}"\nmax_size = "50 cows"\n{}\n'
    text = "".join(
        entry.format(name, place)
        for name, place in {
            "A": f'account = "nobody"\ndrive_id = "{drive_id}"',
            "B": 'drive_id = "b!of-nobody-at-all"',
            "C": 'url = "https://files.example.org/somewhere"\naccount = "nobody"',
            "D": "",
            "E": f'drive_id = "{drive_id}"\nfolder = "Bokos"',
        }.items()
    )
    told = [str(one) for one in (await plan_declared(here.parts, text)).problems]
    for name, sentence in (
        ("A", "the account 'nobody'"),
        ("B", "b!of-nobody-at-all"),
        ("C", "files.example.org"),
        ("C", "the account 'nobody'"),
        ("D", "It says none of them"),
        ("E", "Bokos"),
    ):
        mine = [one for one in told if f"entry '{name}'" in one]
        assert any("max_size is '50 cows'" in one for one in mine)
        assert any(sentence in one for one in mine), (name, told)


async def test_a_place_that_is_not_there_is_told_in_the_line_that_names_it(
    here: Offline, sim: GraphSim
) -> None:
    (drive_id, *_) = furnish(sim)
    text = f"""\
[defaults]
account = "sim"

[[connections]]
name = "A"
url = "{HOST}/sites/Nowhere/Shared%20Documents"

[[connections]]
name = "B"
site = "{HOST}/sites/Nowhere"
library = "Shelf 1"

[[connections]]
name = "C"
folder = "Maps"
library = "Shelf 999"
site = "{HOST}/sites/Archive"

[[connections]]
name = "D"
folder = "Bokos"
drive_id = "{drive_id}"

[[connections]]
name = "E"
folder = "Books"
drive_id = "b!of-nobody-at-all"

[[connections]]
name = "F"
folder = "Books/Books.txt"
drive_id = "{drive_id}"

[[connections]]
name = "G"
url = "no address"
"""
    told = {one.entry: one.line for one in (await plan_declared(here.parts, text)).problems}
    assert told == {"'A'": 6, "'B'": 10, "'C'": 16, "'D'": 21, "'E'": 27, "'F'": 31, "'G'": 36}
    # An account that no entry names itself is wrong where the defaults name it.
    nobody = text.replace('"sim"', '"nobody"')
    problems = (await plan_declared(here.parts, nobody)).problems
    assert [one.entry for one in problems if one.line == 2] == [f"'{one}'" for one in "ABCDEFG"]
    assert [(one.entry, one.line) for one in problems if one.line != 2] == [("'G'", 36)]


def test_problems_are_told_all_at_once_each_with_its_line() -> None:
    text = """\
colour = "red"

[defaults]
account = "sim"
grace = "soon"
url = "https://example.org"

[[connections]]
name = "One"
drive_id = "b!x"
types = ["*.p?f"]
max_size = "50 cows"

[[connections]]
name = "Two"
url = "https://example.org"
folder = "There"

[[connections]]
name = "one"
library = "Alone"
site = ""
flavour = "sweet"

[[connections]]

[[connections]]
name = "Good"
drive_id = "b!y"
"""
    entries, problems = read_declared(text, now=NOW)
    assert [one.name for one in entries] == ["One", "Good"], "their places can be looked for"
    assert entries[0].written == {}
    told = [(one.line, one.entry, one.sentence.split(";")[0]) for one in problems]
    assert told == [
        (1, None, "There is no 'colour'"),
        (6, None, "[defaults] cannot have url"),
        (5, None, "[defaults] grace is 'soon'"),
        (11, "'One'", "types is ['*.p?f']"),
        (12, "'One'", "max_size is '50 cows'"),
        (14, "'Two'", "It says url and folder"),
        (23, "'one'", "There is no 'flavour'"),
        (22, "'one'", "site is ''"),
        (25, "number 4", "It says none of them"),
        (20, "'one'", "The name is that of the entry in line 8 as well."),
    ]
    (broken,) = read_declared("[[connections]\n", now=NOW)[1]
    assert "It is no TOML" in broken.sentence
    assert "line 1" in broken.sentence


@contextmanager
def simulated(folder: Path, state: Path) -> Iterator[GraphSim]:
    """Run graphsim in a thread of its own, for commands that have an event loop of theirs."""
    started: Future[tuple[GraphSim, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        async with serve(folder, profile="business", state=state) as sim:
            stop = asyncio.Event()
            started.set_result((sim, asyncio.get_running_loop(), stop))
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    sim, loop, stop = started.result(30)
    try:
        yield sim
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def pruned_and_declared_again(command: Callable[..., Any], file: Path) -> None:
    """Apply an empty file with --prune, then the file again; at the end Books is paused by hand."""
    empty = file.with_name("empty.toml")
    empty.write_text("")
    prune = ("connections", "apply", str(empty), "--prune")
    refused = command(*prune, ok=(3,)).stderr
    assert "declares 0 connections, and --prune would pause 1 of 1" in refused
    assert "say the same with --yes" in refused
    shown = command("connections", "plan", str(file)).stdout
    assert "Nothing to do." in shown
    assert "Applied: 1 connection." in command(*prune, "--yes").stdout
    back = command("connections", "plan", str(file)).stdout
    assert "paused: yes, since it left the file → no" in back
    assert "Applied: 1 connection." in command("connections", "apply", str(file)).stdout
    command("connection", "pause", "Books")
    assert "Books is paused, and stays so until 'drivefeed resume Books'" in (
        command("connections", "apply", str(file)).stdout
    )


def test_by_command(tmp_path: Path, state: Path) -> None:
    drive = tmp_path / "OneDrive"
    for name, text in {"Books/a.txt": "a book", "Books/b.md": "b", "Maps/c.txt": "c"}.items():
        path = drive / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    home = tmp_path / "data"
    home.mkdir()
    with simulated(drive, state) as sim:
        ends = sim.endpoints
        account = {
            "name": "sim",
            "tenant_id": ends.tenant_id,
            "client_id": ends.client_id,
            "client_secret": ends.client_secret,
            "authority": ends.login_url,
            "graph_url": ends.graph_url,
            "ca_file": str(ends.ca_file),
        }
        lines = ["[[accounts]]", *(f"{key} = {json.dumps(one)}" for key, one in account.items())]
        (home / "drivefeed.toml").write_text("\n".join(lines))
        file = tmp_path / "connections.toml"
        place = f'drive_id = "{sim.drive.id}"\n'
        file.write_text(
            f'[[connections]]\nname = "Books"\n{place}folder = "Books"\nbackend = "x"\n'
        )

        def command(*words: str, ok: tuple[int, ...] = (0,)) -> Any:
            return run_command("--data", str(home), *words, cwd=tmp_path, ok=ok)

        bad = command("connections", "apply", str(file), ok=(3,))
        assert f"{file}: line 5, entry 'Books': backend is 'x'; allowed: embedded." in bad.stderr
        assert "nothing was changed" in bad.stderr
        file.write_text(file.read_text().replace('"x"', '"embedded"'))
        assert "+ Books is new" in command("connections", "plan", str(file)).stdout
        applied = json.loads(command("connections", "apply", str(file), "--count", "--json").stdout)
        assert (applied["touched"], applied["new"][0]["plan"]["files"]) == (1, 2)
        assert "Nothing to do." in command("connections", "apply", str(file)).stdout
        pruned_and_declared_again(command, file)
        command("connection", "resume", "Books")

        plan = json.loads(command("plan", "books", "--types", "txt", "--json").stdout)
        assert (plan["plan"]["files"], plan["changed"]) == (1, False)
        asked = command("connection", "set", "Books", "--types", "txt", ok=(1,)).stdout
        assert "types: none → txt" in asked
        assert "Say the same with --apply" in asked
        wrong = command(
            *("connection", "set", "Books", "--max-size", "0", "--interval", "soon"), ok=(3,)
        ).stderr
        assert "max_size is '0'; allowed: a size above zero" in wrong
        assert "interval is 'soon'; allowed: a duration" in wrong
        done = command("connection", "set", "Books", "--types", "txt", "--apply").stdout
        assert "Changed." in done
        assert "Nothing changes." in command("plan", "Books", "--types", ".TXT").stdout
        command("connection", "rename", "Books", "Library")
        command("connection", "pause", "Library")
        command("connection", "resume", "library")
        shown = json.loads(command("connection", "show", "Library", "--json").stdout)
        assert [one["action"] for one in shown["changes"]] == [
            *("connection.added", "connection.pruned", "connection.changed"),
            *("connection.resumed", "connection.paused", "connection.resumed"),
            *("connection.changed", "connection.renamed"),
            *("connection.paused", "connection.resumed"),
        ]
        assert {one["actor"] for one in shown["changes"]} == {os_user()}
        assert shown["policy"]["types"] == "txt"
        assert "types: none → txt" in command("connection", "show", "Library").stdout
        assert "types txt" in command("connection", "list").stdout
        assert "There are 'Library'" in command("plan", "Nobody", ok=(3,)).stderr
