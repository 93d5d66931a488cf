"""Another embedding model: killed in the middle, with changes meanwhile, and search goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from support.daemon import Daemon, running
from support.embeddings import KEY, Fault, embedding_service
from support.evidence import sha256
from support.processes import until
from support.watching import Watching

if TYPE_CHECKING:
    from pathlib import Path

    from acceptance.conftest import Figure

pytestmark = [pytest.mark.soak, pytest.mark.timeout(300)]

FILES = 20
WORDS = "the orchard by the river"
SLOW = Fault(slow=0.15)


def write(folder: Path, number: int, words: str = "") -> Path:
    path = folder / f"Shelf {number % 3}" / f"note {number:02}.txt"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(f"Note {number}: the orchard by the river, tree {number}. {words}\n")
    return path


def settings(url: str) -> str:
    return "\n".join(
        [
            "[embeddings.words]",
            'provider = "openai"',
            'model = "words"',
            f'base_url = "{url}/v1"',
            f'api_key = "{KEY}"',
            "dimension = 64",
        ]
    )


class Searches(Watching):
    """Searches all the time while it is open, and counts what it found each time."""

    def __init__(self, daemon: Daemon) -> None:
        self.found: list[int] = []
        super().__init__(lambda: self.found.append(len(daemon.search(WORDS, limit=50))))


def state_of(daemon: Daemon) -> dict[str, Any]:
    found: dict[str, Any] = daemon.get("/v1/index/reindex")
    return found


def made_with(daemon: Daemon) -> dict[str, dict[str, Any]]:
    """Return what the folders of the index say they were made with."""
    return {
        path.parent.name: json.loads(path.read_text())
        for path in daemon.data.glob("index*/identity.json")
    }


def assert_whole(daemon: Daemon) -> None:
    """Every live import has its points, as the catalog counts them, and there are no others."""
    points = daemon.points()
    wanted = {
        (row["id"], row["round"]): row["chunks"]
        for row in daemon.rows("SELECT id, round, chunks FROM imports WHERE state = 'settled'")
    }
    assert {key: count for key, (_, count) in points.items()} == wanted
    live = {
        (row["live_import_id"], row["live_round"])
        for row in daemon.rows("SELECT * FROM documents WHERE live_import_id IS NOT NULL")
    }
    assert {key for key, (is_live, _) in points.items() if is_live} == live


def test_an_index_changes_its_model_while_it_is_used(tmp_path: Path, figure: Figure) -> None:
    folder = tmp_path / "drive"
    paths = [write(folder, number) for number in range(FILES)]
    home = tmp_path / "home"
    home.mkdir()
    with (
        embedding_service() as service,
        running(home, folder, settings=settings(service.url)) as daemon,
    ):
        daemon.wait_for_rest(files=FILES)
        before = daemon.ledger()
        assert list(made_with(daemon)) == ["index"]
        mark = daemon.sim.mark()
        service.faults = [SLOW] * 200

        with Searches(daemon) as searches:
            with daemon._client() as client:
                begun = client.post("/v1/index/reindex", params={"to": "words"})
            assert begun.json()["state"] == "building"
            until(lambda: state_of(daemon)["done"] >= 4, seconds=60, what="a few files")
            write(folder, FILES)
            paths[0].unlink()
            paths[1].rename(folder / "moved.txt")
            until(lambda: state_of(daemon)["done"] >= 8, seconds=60, what="some more")
            assert state_of(daemon)["state"] == "building"
        assert searches.found
        assert min(searches.found) >= FILES - 1
        daemon.kill()
        built = len({text for text in service.texts if "Note" in text})
        asked = len(service.texts)
        service.faults.clear()

        daemon.start()
        with Searches(daemon) as searches:
            # It goes on by itself; the command waits for its end.
            assert daemon.json("reindex")["state"] == "idle"
            daemon.wait_for_rest(files=FILES)
            until(lambda: len(made_with(daemon)) == 1, seconds=30, what="one collection")
            until(
                lambda: "moved.txt" in [hit["path"] for hit in daemon.search(WORDS, limit=50)],
                seconds=30,
                what="the new place",
            )
        assert min(searches.found) >= FILES - 1

        assert made_with(daemon)["index-2"]["provider"] == "openai"
        assert "words" in state_of(daemon)["active"]
        assert_whole(daemon)
        # What was built before the kill was not built again, but for the file in hand.
        assert built >= 8
        assert len([text for text in service.texts[asked:] if "Note" in text]) <= FILES + 2 - built
        figure("texts embedded for", f"{FILES + 1} files: {len(service.texts)}")
        # Nothing was downloaded or charged for it.
        new = {sha256(folder / f"Shelf {FILES % 3}" / f"note {FILES}.txt")}
        assert {one.sha256 for one in daemon.ledger()[len(before) :]} == new
        assert len(daemon.sim.downloads(since=mark)) <= 2
        assert KEY not in (home / "up.log").read_text()
        daemon.command("verify")
        assert_it_changes_back(daemon)


def assert_it_changes_back(daemon: Daemon) -> None:
    # Without a daemon, the command does it.
    daemon.stop()
    assert daemon.json("reindex", "--to", "local")["state"] == "idle"
    assert list(made_with(daemon)) == ["index-3"]
    assert made_with(daemon)["index-3"]["provider"] == "local"
    assert len(daemon.json("search", WORDS, "--limit", "50")) == FILES
    daemon.start()
    assert_whole(daemon)
