from __future__ import annotations

from dataclasses import replace

import pytest

from drivefeed.catalog.listing import ListedFile
from drivefeed.cli.happenings import Happenings

FILE = ListedFile(
    connection_id="c",
    item_id="i",
    path="Harbour/Cranes.md",
    standing="searchable",
    why="settled",
    detail="",
    document_id="d",
    import_id="one",
    state="settled",
    round=1,
    size=10,
    pages=1,
    chunks=7,
    live=True,
)
ON_ITS_WAY = replace(FILE, standing="in_progress", why="discovered", live=False, chunks=None)
STALE = replace(FILE, standing="stale", why="stored", import_id="two", chunks=None)
FAILED = replace(ON_ITS_WAY, standing="failed", why="corrupt")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ([ON_ITS_WAY], [FILE], ["became searchable (7 chunks)"]),
        ([ON_ITS_WAY], [replace(FILE, chunks=1)], ["became searchable (1 chunk)"]),
        ([FILE], [STALE], ["changed: a new version is on its way"]),
        ([STALE], [replace(FILE, import_id="two")], ["the new version is searchable (7 chunks)"]),
        ([FILE], [replace(FILE, import_id="two")], ["the new version is searchable (7 chunks)"]),
        ([FILE], [replace(FILE, path="Harbour/Lifts.md")], ["renamed, was 'Cranes.md'"]),
        ([FILE], [replace(FILE, path="Port/Cranes.md")], ["moved, was in 'Harbour'"]),
        ([FILE], [replace(FILE, path="Lifts.md")], ["moved and renamed, was 'Harbour/Cranes.md'"]),
        ([FILE], [], ["deleted: hidden from search"]),
        ([ON_ITS_WAY], [], ["deleted"]),
        ([ON_ITS_WAY], [FAILED], ["failed: corrupt"]),
        ([FAILED], [ON_ITS_WAY], ["is tried again"]),
        ([], [ON_ITS_WAY], []),
        ([ON_ITS_WAY], [replace(ON_ITS_WAY, why="stored")], []),
        ([FILE], [FILE], []),
    ],
)
def test_what_happened_between_two_looks(
    before: list[ListedFile], after: list[ListedFile], words: list[str]
) -> None:
    happenings = Happenings()
    happenings.look(before)

    assert [one.words for one in happenings.look(after)] == words
    assert happenings.look(after) == []


def test_the_first_look_tells_only_of_failures() -> None:
    assert [one.words for one in Happenings().look([FILE])] == []
    assert [one.words for one in Happenings().look([FAILED])] == ["failed: corrupt"]


def test_a_file_that_was_put_back_is_told() -> None:
    happenings = Happenings()
    for files in ([FILE], []):
        happenings.look(files)

    assert [one.words for one in happenings.look([FILE])] == ["is back: searchable"]
