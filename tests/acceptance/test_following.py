"""A demo is left running, and search follows what happens to the folder."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest

from acceptance.village import (
    PATIENCE_SECONDS,
    TEXTS,
    Watch,
    document,
    documents,
    erased,
    events,
    found_again,
    hidden,
    is_shown_at,
    paid,
    shown,
    story,
    write,
)
from support.demo import Demo, running_demo
from support.evidence import sha256
from support.processes import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from acceptance.conftest import Figure

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

FRESH_SECONDS = 10
SHORT_GRACE_SECONDS = 3
LONG_GRACE_SECONDS = 3600


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("following") / "Village"
    for path, text in TEXTS.items():
        write(folder, path, text)
    return folder


@pytest.fixture(scope="module")
def demo(written: Path) -> Iterator[Demo]:
    """One demo for the tests of this module; each works with files of its own."""
    home = written.parent
    with running_demo(home, written, home / "data", grace=LONG_GRACE_SECONDS) as demo:
        demo.wait_for_rest(files=len(TEXTS))
        yield demo


def test_an_added_sentence_is_found_within_seconds_and_the_old_version_never_again(
    demo: Demo, written: Path, figure: Figure
) -> None:
    path, old = "Ferry.txt", TEXTS["Ferry.txt"]
    document_id = document(demo, path)
    (before,) = shown(demo, old, document_id)
    added = "From May the Quillonby lantern boat sails at midnight as well."
    # The words of the old version, which is the better hit for them as long as it is there.
    with Watch(demo, old, document_id) as watch:
        began = time.monotonic()
        write(written, path, f"{old}\n\n{added}\n")
        until(
            lambda: [one for one in demo.search("Quillonby") if "Quillonby" in one["snippet"]],
            seconds=PATIENCE_SECONDS,
            what="the added sentence",
        )
        found = time.monotonic()
        erased(demo, before.import_id)
        until(
            lambda: watch.answers[-1][0] > found,
            seconds=PATIENCE_SECONDS,
            what="an answer to a question that came later",
        )
    figure("an added sentence is found after", f"{found - began:.1f} s")
    assert found - began < FRESH_SECONDS
    (after,) = shown(demo, "Quillonby", document_id)
    assert watch.versions() == [before.import_id, after.import_id], "a gap, or back to the old"
    assert watch.versions(since=found) == [after.import_id], "a mix of old and new"
    assert after.path == path

    old_version, new_version = story(demo, path)["versions"]
    assert (old_version["id"], new_version["id"]) == (before.import_id, after.import_id)
    assert (old_version["state"], old_version["reason"]) == ("withdrawn", "superseded")
    assert new_version["state"] == "settled"
    assert new_version["chunks"] == demo.points()[(after.import_id, 1)][1]
    assert old_version["charged"]
    assert new_version["charged"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("Orchard", "Fruit trees"), ("Mill", "Spare/Mill")],
    ids=["renamed", "moved"],
)
def test_renaming_or_moving_a_folder_downloads_and_embeds_nothing(
    demo: Demo, written: Path, old: str, new: str
) -> None:
    files = [path for path in TEXTS if path.startswith(f"{old}/")]
    ids = documents(demo)
    mark, points, effects = demo.sim.mark(), demo.points(), paid(demo)
    (written / old).rename(written / new)
    for path in files:
        moved = new + path.removeprefix(old)
        until(
            partial(is_shown_at, demo, TEXTS[path], ids[path], moved),
            seconds=PATIENCE_SECONDS,
            what=f"{path} at its new place",
        )
    until(
        lambda: not demo.rows("SELECT id FROM documents WHERE misplaced"),
        seconds=PATIENCE_SECONDS,
        what="the index to know the new places",
    )
    moved_ids = {new + path.removeprefix(old): ids[path] for path in files}
    others = {path: found for path, found in ids.items() if path not in files}
    assert documents(demo) == moved_ids | others
    assert demo.sim.downloads(since=mark) == []
    assert demo.points() == points
    assert paid(demo) == effects
    passport = story(demo, new + files[0].removeprefix(old))
    assert passport["document"]["id"] == ids[files[0]]
    assert passport["path"] == new + files[0].removeprefix(old)


def test_a_deleted_file_is_hidden_at_once_and_put_back_in_time_it_is_as_before(
    demo: Demo, written: Path, figure: Figure
) -> None:
    path = "Harbour.txt"
    document_id = document(demo, path)
    (before,) = shown(demo, TEXTS[path], document_id)
    effects, mark = paid(demo), demo.sim.mark()
    began = time.monotonic()
    (written / path).unlink()
    hidden(demo, TEXTS[path], document_id)
    took = time.monotonic() - began
    figure("a deleted file has left search after", f"{took:.1f} s")
    # The grace of this demo is an hour; it counts for what is erased, not for what is shown.
    assert took < FRESH_SECONDS
    until(
        lambda: demo.points()[(before.import_id, 1)] == (False, 1),
        seconds=PATIENCE_SECONDS,
        what="the points to be hidden in the index itself",
    )
    assert paid(demo) == effects, "nothing is erased before the grace ends"
    assert story(demo, path)["item"]["deleted"]

    write(written, path, TEXTS[path])
    found_again(demo, path)
    assert [one.sha256 for one in demo.ledger()] == [one.sha256 for one in effects["ledger"]]
    assert len(demo.sim.downloads(since=mark)) <= 2


def test_content_that_goes_and_comes_back_ends_as_it_began_and_each_version_is_charged_once(
    demo: Demo, written: Path
) -> None:
    path, first = "Spare/Well.txt", TEXTS["Spare/Well.txt"]
    second = "The well behind the chapel ran dry; water comes by the Tarnbeck cart now."
    document_id = document(demo, path)
    (before,) = shown(demo, first, document_id)
    write(written, path, second)
    until(
        lambda: [one for one in shown(demo, "Tarnbeck", document_id) if one != before],
        seconds=PATIENCE_SECONDS,
        what="the second version",
    )
    write(written, path, first)
    until(
        lambda: [one.import_id for one in shown(demo, first, document_id)] == [before.import_id],
        seconds=PATIENCE_SECONDS,
        what="the first version again",
    )
    (after,) = shown(demo, first, document_id)
    assert after.round == 2
    versions = {one["id"]: one for one in story(demo, path)["versions"]}
    assert len(versions) == 2
    again = versions.pop(before.import_id)
    assert {"settled", "wanted_again", "removed"} <= set(events(again))
    (other,) = versions.values()
    erased(demo, other["id"])
    charges = Counter(one.import_id for one in demo.ledger() if one.document_id == document_id)
    assert charges == {before.import_id: 1, other["id"]: 1}
    assert demo.points()[(after.import_id, 2)] == (True, 1)
    assert (
        not demo.search("Tarnbeck")[:1] or "Tarnbeck" not in demo.search("Tarnbeck")[0]["snippet"]
    )


def test_after_the_grace_a_deleted_file_is_erased_and_put_back_it_is_not_charged_again(
    tmp_path: Path,
) -> None:
    folder, path = tmp_path / "Village", "Ferry.txt"
    for each in ("Ferry.txt", "Harbour.txt"):
        write(folder, each, TEXTS[each])
    with running_demo(tmp_path, folder, tmp_path / "data", grace=SHORT_GRACE_SECONDS) as demo:
        demo.wait_for_rest(files=2)
        document_id = document(demo, path)
        (before,) = shown(demo, TEXTS[path], document_id)
        ledger = demo.ledger()
        aside = tmp_path / "aside.txt"
        shutil.copy2(folder / path, aside)
        (folder / path).unlink()
        hidden(demo, TEXTS[path], document_id)
        erased(demo, before.import_id)
        assert len(demo.points()) == len(demo.objects()) == 1
        (version,) = story(demo, path)["versions"]
        assert (version["state"], version["reason"]) == ("withdrawn", "removed_at_source")

        shutil.copy2(aside, folder / path)
        found_again(demo, path)
        until(
            lambda: len(demo.points()) == len(demo.objects()) == 2,
            seconds=PATIENCE_SECONDS,
            what="two files in index and store",
        )
        assert demo.ledger()[: len(ledger)] == ledger
        assert [one for one in demo.ledger() if one.sha256 == sha256(aside)] == [
            one for one in ledger if one.sha256 == sha256(aside)
        ]
        pages = sum(one.pages for one in demo.ledger())
        assert demo.rows("SELECT pages_used FROM orgs") == [{"pages_used": pages}]
