"""Two organizations on different embeddings: chosen, built beside, killed, swapped, waited for."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.daemon import Daemon
from support.embeddings import KEY, EmbeddingService, Fault, embedding_service
from support.processes import until
from support.sim import Sim
from support.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from acceptance.conftest import Figure

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

OURS, THEIRS = 8, 2
WORDS = "the orchard by the river"
NEW_KEY = "sk-canary-anew-71c9e2"
PATIENCE = 60.0


def write(folder: Path, name: str) -> Path:
    path = folder / f"{name}.txt"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(f"{name} of the orchard by the river.\n")
    return path


@contextmanager
def two_orgs(home: Path, folder: Path, service: EmbeddingService) -> Iterator[Daemon]:
    """Run one daemon for two organizations; each follows a folder of the same drive."""
    sim = Sim(folder, home / "graphsim")
    daemon: Daemon | None = None
    try:
        sim.start()
        ends = sim.endpoints
        account = {
            "name": "other",
            "org": "neighbours",
            **{key: ends[key] for key in ("tenant_id", "client_id", "client_secret", "graph_url")},
            "authority": ends["login_url"],
            "ca_file": ends["ca_file"],
        }
        daemon = Daemon(
            home,
            sim,
            settings="\n".join(
                [
                    "[embedding]",
                    'provider = "ollama"',
                    'model = "common"',
                    f'base_url = "{service.url}"',
                    f'api_key = "{KEY}"',
                    f"dimension = {service.dimension}",
                ]
            ),
            connection="\n".join(
                [
                    'folder = "Ours"',
                    "[[accounts]]",
                    *(f"{key} = {json.dumps(value)}" for key, value in account.items()),
                    "[[connections]]",
                    'account = "other"',
                    f"drive_id = {json.dumps(ends['drive_id'])}",
                    'folder = "Theirs"',
                ]
            ),
        )
        daemon.start()
        yield daemon
        daemon.stop()
    finally:
        if daemon is not None:
            daemon.end()
        sim.stop()


def found(daemon: Daemon, org: str) -> set[str]:
    hits = daemon.get("/v1/search", q=WORDS, limit=50, org=org)
    return {hit["path"].rpartition("/")[2].removesuffix(".txt") for hit in hits}


class Searches(Watching):
    """Searches for both organizations all the time while it is open."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.found: dict[str, list[set[str]]] = {"test": [], "neighbours": []}
        super().__init__(self._search)

    def _search(self) -> None:
        for org, seen in self.found.items():
            seen.append(found(self._daemon, org))


def state_of(daemon: Daemon) -> dict[str, Any]:
    said: dict[str, Any] = daemon.get("/v1/index/reindex", org="test")
    return said


def made_with(daemon: Daemon) -> dict[str, tuple[str, int]]:
    """Return what the folders of the index say they were made with."""
    read = {
        path.parent.name: json.loads(path.read_text())
        for path in daemon.data.glob("index*/identity.json")
    }
    return {name: (one["model"], one["dimension"]) for name, one in read.items()}


def held(daemon: Daemon) -> list[dict[str, Any]]:
    return daemon.rows(
        "SELECT orgs.name, imports.hold, imports.detail FROM imports "
        "JOIN orgs ON orgs.id = imports.org_id WHERE imports.hold = 'waiting_for_index'"
    )


@dataclass
class Town:
    """The daemon, the drive that it follows for both, and the service that ours changes to.

    Attributes:
        ours, theirs: what each organization should find by now.
    """

    daemon: Daemon
    drive: Path
    own: EmbeddingService
    key_file: Path
    ours: set[str]
    theirs: set[str]

    def at_rest(self) -> None:
        # Both know all items of the drive, so each counts twice.
        self.daemon.wait_for_rest(files=2 * (OURS + THEIRS))

    def is_found(self) -> bool:
        return (found(self.daemon, "test"), found(self.daemon, "neighbours")) == (
            self.ours,
            self.theirs,
        )

    def answers(self) -> bool:
        try:
            return bool(found(self.daemon, "test"))
        except httpx.HTTPStatusError:
            return False

    def settles(self) -> None:
        until(self.is_found, seconds=PATIENCE, what=self.daemon.last_words)

    def chosen(self, *words: str) -> dict[str, Any]:
        said: dict[str, Any] = self.daemon.json("org", "embedding", "test", *words)
        return said


def test_one_of_two_organizations_changes_its_embedding(tmp_path: Path, figure: Figure) -> None:
    drive, home, key_file = (tmp_path / name for name in ("drive", "home", "key"))
    home.mkdir()
    key_file.write_text(KEY + "\n")
    ours, theirs = {f"Tree {number}" for number in range(OURS)}, {"Reed", "Rush"}
    for folder, names in (("Ours", ours), ("Theirs", theirs)):
        for name in names:
            write(drive / folder, name)
    with (
        embedding_service(dimension=48) as common,
        embedding_service(dimension=32) as own,
        two_orgs(home, drive, common) as daemon,
    ):
        town = Town(daemon, drive, own, key_file, ours, theirs)
        town.at_rest()
        assert town.is_found()
        mark, charges = daemon.sim.mark(), daemon.ledger()
        choose(town)
        killed_while_it_builds(town)
        figure("texts embedded for", f"{OURS + 1} files of an organization: {len(own.texts)}")
        assert len(daemon.ledger()) == len(charges) + 1
        # One file was new, and a download is two requests.
        assert len(daemon.sim.downloads(since=mark)) == 2
        assert daemon.json("verify")["holds"]
        its_service_fails(town)
        assert not daemon.rows("SELECT id FROM imports WHERE state = 'rejected'")
        assert daemon.json("verify")["holds"]
        assert_no_key_is_told(daemon)


def choose(town: Town) -> None:
    """What does not fit is refused before anything is remembered; a choice changes no search."""
    words = ("--provider", "openai", "--model", "words", "--base-url", f"{town.own.url}/v1")
    words += ("--key-file", str(town.key_file))
    town.daemon.command("org", "embedding", "test", *words, "--dimension", "33", ok=(3,))
    assert town.chosen()["wanted"] is None
    words += ("--dimension", "32")
    plan = town.daemon.command("org", "embedding", "test", *words, "--plan")
    assert f"{OURS} documents would be embedded again" in " ".join(plan.split())
    assert town.chosen()["wanted"] is None
    chosen = town.chosen(*words)
    assert (chosen["needs_reindex"], chosen["documents"]) == (True, OURS)
    assert chosen["active"]["collection"] == "index"
    assert town.is_found()


def killed_while_it_builds(town: Town) -> None:
    """Documents come and go, the daemon is killed, and nobody's search has a gap."""
    daemon, own = town.daemon, town.own
    own.faults = [Fault(slow=0.15)] * 200
    with Searches(daemon) as searches:
        with daemon._client() as client:
            begun = client.post("/v1/index/reindex", params={"org": "test"})
        assert begun.json()["state"] == "building", begun.text
        until(lambda: state_of(daemon)["done"] >= 2, seconds=PATIENCE, what="a few files")
        write(town.drive / "Ours", "Sapling")
        (town.drive / "Ours" / "Tree 0.txt").unlink()
        until(lambda: state_of(daemon)["done"] >= 4, seconds=PATIENCE, what="some more")
        assert state_of(daemon)["state"] == "building"
    daemon.kill()
    stays = town.ours - {"Tree 0"}
    assert searches.found["test"]
    assert all(stays <= one <= town.ours | {"Sapling"} for one in searches.found["test"])
    assert all(one == town.theirs for one in searches.found["neighbours"])
    asked = len(own.texts)
    own.faults.clear()
    town.ours = stays | {"Sapling"}

    daemon.start()
    with Searches(daemon) as searches:
        # It goes on by itself; the command waits for its end.
        assert daemon.json("reindex", "--org", "test")["state"] == "idle"
        town.at_rest()
        town.settles()
    assert all(stays <= one for one in searches.found["test"])
    assert all(one == town.theirs for one in searches.found["neighbours"])
    # What was built before the kill was not built again, but for the file in hand.
    again = [text for text in own.texts[asked:] if "of the orchard" in text]
    assert len(again) <= OURS + 2 - 4

    standing = town.chosen()
    name = f"index-org-{standing['org_id']}-1"
    assert made_with(daemon) == {"index": ("common", 48), name: ("words", 32)}
    assert (standing["active"]["collection"], standing["needs_reindex"]) == (name, False)
    theirs = daemon.json("org", "embedding", "neighbours")
    assert theirs["active"]["collection"] == "index"


def its_service_fails(town: Town) -> None:
    """Ours wait while their service is down, and others do not; a new key counts when given."""
    daemon, own = town.daemon, town.own
    own.faults = [Fault(status=503)] * 1000
    own.key = NEW_KEY
    write(town.drive / "Ours", "Seedling")
    until(lambda: held(daemon), seconds=PATIENCE, what=daemon.last_words)
    write(town.drive / "Theirs", "Fern")
    town.theirs = town.theirs | {"Fern"}
    until(
        lambda: found(daemon, "neighbours") == town.theirs,
        seconds=PATIENCE,
        what=daemon.last_words,
    )
    assert {one["name"] for one in held(daemon)} == {"test"}
    own.faults.clear()
    town.key_file.write_text(NEW_KEY)
    town.chosen("--key-file", str(town.key_file))
    town.ours = town.ours | {"Seedling"}
    # The daemon looks for it every five seconds; until then its search is refused with a sentence.
    until(town.answers, seconds=PATIENCE, what=daemon.last_words)
    town.settles()


def assert_no_key_is_told(daemon: Daemon) -> None:
    """No key is in the log, in the catalog's file, or in the audit log, which has the choices."""
    log = (daemon.home / "up.log").read_bytes()
    catalog = b"".join(path.read_bytes() for path in daemon.data.glob("catalog.sqlite*"))
    for key in (KEY, NEW_KEY):
        assert key.encode() not in log
        assert key.encode() not in catalog
    told = daemon.rows("SELECT after FROM audit_log WHERE action = 'org.embedding_chosen'")
    assert [json.loads(one["after"])["has_key"] for one in told] == [True, True]
