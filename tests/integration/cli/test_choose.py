"""`browse` and `connect`, typed in this process, against graphsim in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from drivefeed.cli.app import app
from drivefeed.cli.browser import Browser, browse_on_terminal
from drivefeed.domain.errors import DrivefeedError
from graphsim.serving import GraphSim, serve
from integration.graph_source.kit import sim_state
from integration.graph_source.town import HOST, Town
from support.evidence import rows_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LIBRARY = f"{HOST}/sites/Lab/Shared%20Documents"


class Thread:
    """A loop of its own, in which graphsim serves while commands run theirs."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._stack = AsyncExitStack()

    def __enter__(self) -> GraphSim:
        self._thread.start()
        opened = self._stack.enter_async_context(serve(state=sim_state(), page_size=2))
        sim: GraphSim = asyncio.run_coroutine_threadsafe(opened, self._loop).result(60)
        return sim

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stack.aclose(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def sim() -> Iterator[GraphSim]:
    with Thread() as made:
        lab = made.add_site("Lab")
        docs = lab.drives[0]
        trials = docs.create_folder("Trials")
        for number in range(5):
            docs.create_folder(f"Trial {number}", trials.id)
        docs.create_file("plan.txt", b"the plan", trials.id)
        made.add_library(lab, "Archive")
        for number in range(4):
            made.add_site(f"Site {number}")
        made.add_person("ana@graphsim.invalid", "Ana").drives[0].create_folder("Plans")
        yield made


class Typed:
    """Commands on one data folder, as they are typed."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def __call__(self, *words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["--data", str(self.data), *words])
        if isinstance(done.exception, DrivefeedError):
            raise done.exception
        assert done.exit_code == code, (done.output, done.exception)
        return str(done.stdout)

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self(*words, "--json", code=code))

    def refused(self, *words: str) -> str:
        with pytest.raises(DrivefeedError) as caught:
            self(*words)
        return str(caught.value)


@pytest.fixture
def typed(sim: GraphSim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    monkeypatch.delenv("DRIVEFEED_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    data = tmp_path / "data"
    data.mkdir()
    selected = sim.add_app("selected", roles={"Sites.Selected"})
    files = sim.add_app("files", roles={"Files.Read.All"})
    selected.secrets[:] = files.secrets[:] = sim.directory.app.secrets
    ends = sim.endpoints
    lines = []
    clients = {
        "narrow": selected.client_id,
        "wide": ends.client_id,
        "files": files.client_id,
    }
    for name, client in clients.items():
        account = {
            "name": name,
            "tenant_id": ends.tenant_id,
            "client_id": client,
            "client_secret": ends.client_secret,
            "authority": ends.login_url,
            "graph_url": ends.graph_url,
            "ca_file": ends.ca_file,
        }
        lines += ["[[accounts]]", *(f"{key} = {json.dumps(one)}" for key, one in account.items())]
    (data / "drivefeed.toml").write_text("\n".join(lines))
    return Typed(data)


def connections(typed: Typed) -> list[dict[str, Any]]:
    return rows_in(typed.data, "SELECT id, name, root_item_id, policy FROM connections ORDER BY id")


def test_a_folder_is_shown_back_before_it_is_connected(typed: Typed, sim: GraphSim) -> None:
    trials = sim.estate.site("graphsim.sharepoint.invalid:/sites/Lab").drives[0]
    said = typed("connect", f"{LIBRARY}/Trials")
    for words in ("wide", "Lab", "Documents", "/Trials", f"{LIBRARY}/Trials", trials.id):
        assert words in said
    assert "The account 'narrow' was tried before: The account 'narrow' may not read" in said
    assert "Nothing was changed. Say the same with --apply to connect it." in said
    assert connections(typed) == []
    told = typed.json("connect", f"{LIBRARY}/Trials", "--plan")
    assert told["understood"]["path"] == "Trials"
    assert told["understood"]["drive_id"] == trials.id
    assert (told["applied"], told["connection_id"]) == (False, None)


def test_applied_twice_it_is_connected_once(typed: Typed) -> None:
    said = typed("connect", f"{LIBRARY}/Trials", "--account", "wide", "--apply", "--types", "pdf")
    assert "Connected: 'Trials'; it begins once a daemon runs" in said
    (first,) = connections(typed)
    assert json.loads(first["policy"])["types"] == ["pdf"]
    again = typed("connect", f"{LIBRARY}/Trials", "--account", "wide", "--apply")
    assert "It is connected already, as 'Trials'." in again
    assert again.rstrip().endswith(
        "Nothing was changed: 'Trials' is connected with these options already."
    )
    planned = typed("connect", f"{LIBRARY}/Trials", "--account", "wide", "--types", "pdf")
    assert planned.rstrip().endswith("'Trials' is connected with these options already.")
    assert "No file comes in" not in again
    assert " -0 " not in again, "what is not listed yet is no change"
    assert connections(typed) == [first]
    told = typed.json(
        "connect", f"{LIBRARY}/Trials", "--account", "wide", "--apply", "--max-size", "1 MB"
    )
    assert [one["option"] for one in told["changes"]] == ["max_size"]
    (after,) = connections(typed)
    assert after["id"] == first["id"]
    assert json.loads(after["policy"])["types"] == ["pdf"]


def test_overlaps_are_told_by_id(typed: Typed, sim: GraphSim) -> None:
    drive = sim.estate.site("graphsim.sharepoint.invalid:/sites/Lab").drives[0]
    typed("connect", f"{LIBRARY}/Trials", "--account", "wide", "--apply")
    inner = typed.json("connect", f"{LIBRARY}/Trials/Trial 1", "--account", "wide")
    (one,) = inner["overlaps"]
    assert (one["relation"], one["name"], one["path"]) == ("inside", "Trials", "Trials")
    typed("connect", f"{LIBRARY}/Trials/Trial 1", "--account", "wide", "--apply")
    trials = drive.tree.resolve(drive.tree.root, ["Trials"])
    assert trials is not None
    drive.rename(trials.id, "Trials of 2026")
    try:
        outer = typed("connect", LIBRARY, "--account", "wide")
        assert "It contains the connection 'Trials' (/Trials of 2026)" in outer
        assert "It contains the connection 'Trial 1' (/Trials of 2026/Trial 1)" in outer
        deep = typed.json("connect", f"{drive.id}:/Trials of 2026/Trial 2", "--account", "wide")
        assert [one["relation"] for one in deep["overlaps"]] == ["inside"]
    finally:
        drive.rename(trials.id, "Trials")


def test_a_library_stays_with_the_account_that_reads_it(typed: Typed) -> None:
    typed("connect", f"{LIBRARY}/Trials", "--account", "wide", "--apply")
    said = typed("connect", f"{LIBRARY}/Trials/Trial 1", "--account", "files", "--apply")
    assert "The account 'files' found it; the library is read through 'wide' already" in said
    (drive,) = rows_in(typed.data, "SELECT account_id FROM drives")
    (wide,) = rows_in(typed.data, "SELECT id FROM accounts WHERE name = 'wide'")
    assert drive["account_id"] == wide["id"]
    assert len(connections(typed)) == 2


def test_names_of_connections_are_told_apart(typed: Typed) -> None:
    typed("connect", f"{LIBRARY}/Trials", "--apply", "--name", "Plans")
    told = typed.json("connect", "ana@graphsim.invalid:/Plans", "--account", "wide", "--apply")
    assert told["name"] == "Plans (OneDrive)"
    assert {one["name"] for one in connections(typed)} == {"Plans", "Plans (OneDrive)"}
    said = typed.refused("connect", LIBRARY, "--name", "plans")
    assert "There is a connection 'plans' already" in said


def test_what_cannot_be_connected_is_told(typed: Typed) -> None:
    assert "is a file" in typed.refused("connect", f"{LIBRARY}/Trials/plan.txt", "--apply")
    said = typed.refused("connect", f"{LIBRARY}/Wrong", "--apply")
    assert "None of 3 accounts can read it" in said
    assert "There is no 'Wrong' in the library 'Documents'" in said
    assert "is Google Drive" in typed.refused("connect", "https://drive.google.com/x", "--apply")
    assert "no such thing as the account 'x'" in typed.refused("connect", LIBRARY, "--account", "x")
    said = typed.refused("connect", f"{LIBRARY}/Trials", "--max-size", "big", "--grace", "x")
    assert "max_size" in said
    assert "grace" in said
    assert connections(typed) == []
    typed("connect", LIBRARY, "--plan", "--apply", code=2)


def test_whose_folder_it_is_has_to_be_clear(typed: Typed) -> None:
    path = typed.data / "drivefeed.toml"
    one, other = path.read_text().rsplit('name = "files"', 1)
    path.write_text(f'{one}name = "files"\norg = "Branch"{other}')
    said = typed.refused("connect", LIBRARY)
    assert "Several organizations have accounts: Branch, default." in said
    told = typed.json("connect", LIBRARY, "--org", "branch", "--apply")
    assert (told["org"], told["understood"]["account_name"]) == ("Branch", "files")
    assert typed.json("browse", "files", "--user", "ana@graphsim.invalid")["entries"]


def test_what_is_kept_of_a_sharing_link_opens_nothing(typed: Typed, sim: GraphSim) -> None:
    drive = sim.estate.site("graphsim.sharepoint.invalid:/sites/Lab").drives[0]
    trials = drive.tree.resolve(drive.tree.root, ["Trials"])
    assert trials is not None
    link = sim.estate.share(drive, trials)
    typed("connect", link, "--account", "wide", "--apply")
    (row,) = rows_in(typed.data, "SELECT url FROM connections")
    assert row["url"] == f"{LIBRARY}/Trials"
    assert link.split("/")[-1].split("?")[0].encode() not in b"".join(
        path.read_bytes() for path in typed.data.glob("catalog.sqlite*")
    )


def test_nothing_to_read_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRIVEFEED_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    assert "There is no drivefeed in" in Typed(tmp_path / "data").refused("connect", LIBRARY)


def test_each_level_is_listed_to_its_end(typed: Typed) -> None:
    sites = typed.json("browse", "wide")
    assert [one["kind"] for one in sites["entries"]] == ["site"] * 5
    assert sites["more"] is False
    assert typed.json("browse", "wide", "--limit", "3")["more"] is True
    found = typed.json("browse", "wide", "--search", "site 2")
    assert [one["name"] for one in found["entries"]] == ["Site 2"]
    libraries = typed.json("browse", "wide", "--site", "Lab")
    assert [one["name"] for one in libraries["entries"]] == ["Documents", "Archive"]
    for library in ("Documents", LIBRARY):
        inside = typed.json("browse", "wide", "--site", f"{HOST}/sites/Lab", "--library", library)
        assert [one["name"] for one in inside["entries"]] == ["Trials"]
    trials = typed.json(
        "browse", "wide", "--site", "Lab", "--library", "Documents", "--path", "Trials"
    )
    assert [one["name"] for one in trials["entries"]] == [
        *(f"Trial {number}" for number in range(5)), "plan.txt",
    ]  # fmt: skip
    assert trials["entries"][5]["size"] == 8
    plans = typed("browse", "wide", "--user", "ana@graphsim.invalid")
    assert "Plans" in plans
    empty = ("--user", "ana@graphsim.invalid", "--path", "Plans")
    assert typed.json("browse", "wide", *empty, code=1)["entries"] == []


def test_what_cannot_be_browsed_is_told(typed: Typed) -> None:
    assert "no OneDrive of its own" in typed.refused("browse", "wide", "--me")
    assert "There is no site 'Nowhere'" in typed.refused("browse", "wide", "--site", "Nowhere")
    said = typed.refused("browse", "wide", "--site", "Lab", "--library", "Wrong")
    assert "Known: 'Documents', 'Archive'" in said
    assert "is shown no sites" in typed.refused("browse", "files")
    said = typed.refused("browse", "narrow")
    assert "is shown no sites" in said
    assert "paste its address" in said
    said = typed.refused("browse", "narrow", "--site", f"{HOST}/sites/Lab")
    assert "grant it this very site" in said
    said = typed.refused("browse", "wide", "--site", f"{HOST}/sites/Nowhere")
    assert "There is no site at" in said
    typed("browse", "wide", "--me", "--user", "x", code=2)


def test_a_person_goes_from_level_to_level(
    sim: GraphSim, capsys: pytest.CaptureFixture[str]
) -> None:
    ana = sim.directory.find_person("ana@graphsim.invalid")
    place = Town(sim)
    place.join("ana", ana, ("Sites.Read.All", "Files.Read"))

    def says(*lines: str) -> tuple[str | None, str]:
        with asyncio.Runner() as runner:
            look = runner.run(place.look("ana"))
            left = list(lines)
            chosen = Browser(look, _reader(left), runner).choose()
            assert left == []
            runner.run(place.source.aclose())
        return chosen, capsys.readouterr().out

    chosen, shown = says("1", "1", "c")
    assert "Your OneDrive" in shown
    assert chosen is not None
    assert chosen.endswith("/personal/ana_graphsim_invalid/Documents/Plans")
    chosen, shown = says("lab", "c", "99", "1", "1", "1", "trial 3", "1", "b", "b", "..", "q")
    assert chosen is None
    assert "Open a library or a folder first." in shown
    assert "There is no such number." in shown
    assert "Lab / Documents / Trials / Trial 3" in shown
    chosen, _ = says("lab", "1", "1", "1", "plan.txt", "1", "c")
    assert chosen == f"{LIBRARY}/Trials"


def test_what_was_chosen_is_told_as_a_command(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = ["lab", "1", "1", "1", "c"]
    monkeypatch.setattr("drivefeed.cli.context.options.data_dir", typed.data)
    monkeypatch.setattr("rich.console.Console.input", lambda *_: left.pop(0))
    browse_on_terminal("wide", None)
    command = f"drivefeed connect {LIBRARY}/Trials --account wide"
    assert f"{command} --apply" in capsys.readouterr().out


def _reader(lines: list[str]) -> Callable[[str], str]:
    return lambda _: lines.pop(0)
