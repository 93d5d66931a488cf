"""A drive in graphsim that is edited by rules, and what of it is connected."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from engine.ground import ground
from engine.truth import is_there, policies
from graphsim.items import Profile

if TYPE_CHECKING:
    from drivefeed.domain.model import Policy
    from graphsim.bodies import Body
    from graphsim.items import Item

_CONTENTS = (b"alpha", b"beta", b"gamma")
_NAMES = ("a.txt", "b.txt", "c.md", "d.bin", "x.txt", "sub", "new")

_few = st.integers(0, 7)

seen: Counter[str] = Counter()
"""What all examples of the process came to, for the report of the test."""


class EditedDrive(RuleBasedStateMachine):
    """A drive with a few folders, of which one or two are connected."""

    def __init__(self) -> None:
        super().__init__()
        seen["examples"] += 1
        self.steps = 0
        self.syncs = 0
        self.armed: list[Any] = []
        self.opened: dict[str, list[str]] = {}
        self.policies: dict[str, Policy] = {}

    @initialize(
        profile=st.sampled_from(list(Profile)),
        links=st.sampled_from(["query", "odd", "function"]),
        seed=st.integers(0, 2**32 - 1),
    )
    def begin(self, profile: Profile, links: str, seed: int) -> None:
        self.chance = random.Random(seed)
        self.ground = ground()
        self.stand = self.ground.run(self.ground.new_drive(profile, seed))
        drive = self.drive = self.stand.drive
        seen[f"profile {profile}"] += 1
        drive.quirks.link_form = links
        self.docs = drive.create_folder("docs")
        self.sub = drive.create_folder("sub", self.docs.id)
        self.other = drive.create_folder("other")
        drive.create_file("a.txt", _CONTENTS[0], self.docs.id)
        drive.create_file("b.txt", _CONTENTS[1], self.sub.id)
        drive.create_file("c.md", _CONTENTS[0], self.other.id)
        self._watch_contents()
        self._connect(self.docs.id, 0)

    def _watch_contents(self) -> None:
        """Note which content of which file was opened to be sent."""
        original = self.drive.open

        async def opened(item: Item) -> tuple[Item, Body]:
            now, body = await original(item)
            self.opened.setdefault(item.id, []).append(str(now.quickxor))
            return now, body

        self.drive.open = opened  # type: ignore[method-assign]

    def _connect(self, root: str, number: int) -> None:
        self.policies[root] = policies()[number % len(policies())]
        self.ground.run(self.stand.connect(root, self.policies[root]))

    # --- edits ------------------------------------------------------------------------------

    def _live(self, kind: str) -> list[Item]:
        found = [one for one in self.drive.tree.walk() if one.parent_id is not None]
        if kind == "file":
            return [one for one in found if not one.is_container]
        return [one for one in found if one.is_container]

    def _is_free(self, parent: str, name: str) -> bool:
        return self.drive.tree.child(parent, name) is None

    def _folder(self, number: int) -> Item:
        folders = [self.drive.tree.root, *self._live("folder")]
        return folders[number % len(folders)]

    @rule(where=_few, name=_few, content=_few)
    def create(self, where: int, name: int, content: int) -> None:
        self.steps += 1
        parent, called = self._folder(where), _NAMES[name % len(_NAMES)]
        if not self._is_free(parent.id, called):
            return
        if "." in called:
            self.drive.create_file(called, _CONTENTS[content % 3], parent.id)
        elif len(self._live("folder")) < 6:
            self.drive.create_folder(called, parent.id)

    @rule(which=_few, content=_few, touch=st.booleans())
    def edit(self, which: int, content: int, touch: bool) -> None:  # noqa: FBT001 (drawn)
        self.steps += 1
        files = self._live("file")
        if files:
            one = files[which % len(files)]
            if touch:
                self.drive.touch(one.id, content=bool(content % 2))
            else:
                self.drive.replace(one.id, _CONTENTS[content % 3])

    @rule(kind=st.sampled_from(["file", "folder"]), which=_few, where=_few, name=_few)
    def move(self, kind: str, which: int, where: int, name: int) -> None:
        self.steps += 1
        things = self._live(kind)
        if not things:
            return
        one, parent = things[which % len(things)], self._folder(where)
        stem = _NAMES[name % len(_NAMES)]
        called = stem if ("." in stem) is (kind == "file") else one.name
        above = {each.id for each in self.drive.tree.ancestors(parent)} | {parent.id}
        if one.id in above or not self._is_free(parent.id, called):
            return
        self.drive.move(one.id, parent.id, called)

    @rule(kind=st.sampled_from(["file", "folder"]), which=_few, siblings=st.booleans())
    def remove(self, kind: str, which: int, siblings: bool) -> None:  # noqa: FBT001 (drawn)
        self.steps += 1
        things = self._live(kind)
        if things:
            self.drive.quirks.descendant_tombstones = siblings
            self.drive.delete(things[which % len(things)].id)

    @rule(which=_few, new=st.booleans())
    def restore(self, which: int, new: bool) -> None:  # noqa: FBT001 (drawn)
        self.steps += 1
        gone = [one for one in self.drive.tree.items.values() if one.deleted and one.deleted_top]
        if gone:
            self._restore(gone[which % len(gone)], new_ids=new)

    def _restore(self, one: Item, *, new_ids: bool = False) -> None:
        if not is_there(self.drive, str(one.parent_id)) or not self._is_free(
            str(one.parent_id), one.name
        ):
            return
        group = {each.id for each in self.drive.tree.removed_with(one.id)}
        self.drive.restore(one.id, new_ids=new_ids and not group & set(self.policies))

    @rule(policy=_few, nested=st.booleans())
    def reconnect(self, policy: int, nested: bool) -> None:  # noqa: FBT001 (drawn)
        self.steps += 1
        self._connect(self.sub.id if nested else self.docs.id, policy)
