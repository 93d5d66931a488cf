"""Any edits of a drive, told in pages cut anywhere, come to the documents that are there."""

from __future__ import annotations

import asyncio
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drivefeed.catalog.engine import open_catalog
from drivefeed.domain.model import Policy
from drivefeed.domain.remote import RemoteItem
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from support.postgres import PostgresServer

_FOLDERS = ["docs", "other", "d1", "d2"]
_FILES = ["f1", "f2", "f3"]
_FREE = Policy(brake_count=1_000, brake_floor=1_000)

_EDITS = st.one_of(
    st.tuples(
        st.just("file"), st.sampled_from(_FILES), st.sampled_from(_FOLDERS), st.sampled_from("AB")
    ),
    st.tuples(
        st.just("folder"), st.sampled_from(["d1", "d2"]), st.sampled_from(_FOLDERS), st.just("")
    ),
    st.tuples(st.just("delete"), st.sampled_from([*_FILES, "d1", "d2"]), st.just(""), st.just("")),
    st.tuples(st.just("rename"), st.sampled_from(_FILES), st.just(""), st.sampled_from("xy")),
)
Edit = tuple[str, str, str, str]


class Model:
    """The drive as it really is, and how it tells of what changed."""

    def __init__(self) -> None:
        self.parents = {"docs": "root", "other": "root"}
        self.contents: dict[str, str] = {}
        self.names: dict[str, str] = {}

    def edit(self, edit: Edit) -> list[RemoteItem]:
        kind, key, parent, word = edit
        if kind in {"file", "folder"}:
            return self._put(key, parent, word)
        if key not in self.parents:
            return []
        return self._rename(key, word) if kind == "rename" else self._delete(key)

    def _put(self, key: str, parent: str, word: str) -> list[RemoteItem]:
        if parent not in self.parents or key in [parent, *self.above(parent)]:
            return []
        self.parents[key] = parent
        if word:
            self.contents[key] = word
        return [self.told(key)]

    def _rename(self, key: str, word: str) -> list[RemoteItem]:
        self.names[key] = f"{word}.txt"
        return [self.told(key)]

    def _delete(self, key: str) -> list[RemoteItem]:
        below = [one for one in self.parents if key in self.above(one)]
        for one in [key, *below]:
            del self.parents[one]
        # Tombstones of what lay below a folder may come or not; here every second one does.
        return [RemoteItem(one, deleted=True) for one in [*below[::2], key]]

    def above(self, key: str) -> list[str]:
        found = []
        while key in self.parents:
            key = self.parents[key]
            found.append(key)
        return found

    def told(self, key: str) -> RemoteItem:
        parent = self.parents[key]
        if key in _FOLDERS:
            return folder(key, parent)
        return file(key, parent, self.contents[key], name=self.names.get(key))

    def listed(self) -> list[RemoteItem]:
        return [ROOT, *(self.told(key) for key in self.parents)]

    def wanted(self) -> dict[str, str]:
        return {
            key: self.contents[key]
            for key in _FILES
            if key in self.parents and "docs" in self.above(key)
        }


def _cut(items: list[RemoteItem], size: int) -> list[list[RemoteItem]]:
    return [items[start : start + size] for start in range(0, len(items), size)] or [[]]


@dataclass(frozen=True)
class History:
    """What happens to a drive, and how it is told."""

    before: list[Edit]
    rounds: list[list[Edit]]
    size: int
    seed: int
    full: set[int]


_HISTORIES = st.builds(
    History,
    before=st.lists(_EDITS, max_size=8),
    rounds=st.lists(st.lists(_EDITS, max_size=6), max_size=4),
    size=st.integers(1, 5),
    seed=st.integers(0, 99),
    full=st.sets(st.integers(0, 3)),
)


@settings(max_examples=25)
@given(_HISTORIES)
def test_wanted_documents_are_the_files_in_scope(history: History) -> None:
    """Enumerations list in any order; rounds tell each change, the last state of each item last."""
    with tempfile.TemporaryDirectory() as path:
        asyncio.run(_play(new_catalog(Path(path) / "c.db"), history))


@settings(max_examples=5, suppress_health_check=list(HealthCheck))
@given(history=_HISTORIES)
def test_they_are_on_postgres_too(postgres_server: PostgresServer, history: History) -> None:
    asyncio.run(_play(postgres_server.clean_database(), history))


async def _play(url: str, history: History) -> None:
    shuffle = random.Random(history.seed)

    def listing() -> list[list[RemoteItem]]:
        items = model.listed()
        return _cut(shuffle.sample(items, len(items)), history.size)

    catalog = await open_catalog(
        url, clock=ManualClock(), ids=CountedIds(), checkpoint=no_checkpoint
    )
    try:
        rig = await Rig.make(catalog)
        await rig.connect(policy=_FREE)
        await rig.scan()
        model = Model()
        for edit in history.before:
            model.edit(edit)
        await rig.enumerate(*listing())
        assert await rig.wanted() == model.wanted()
        for number, edits in enumerate(history.rounds):
            changes = [item for edit in edits for item in model.edit(edit)]
            if number in history.full:
                await rig.enumerate(*listing())
            else:
                await rig.round(*_cut(changes, history.size))
            assert await rig.wanted() == model.wanted()
    finally:
        await catalog.aclose()
