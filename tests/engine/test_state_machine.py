"""Whatever happens to a drive, and whatever Graph tells of it: the catalog ends equal to it."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from drivefeed.catalog.tables import documents, imports, reminders
from drivefeed.domain.lifecycle import State
from drivefeed.domain.reasons import Reason
from engine.faults import FAULTS, REORDERS, STALE
from engine.ground import ground
from engine.rclone import copy_of
from engine.truth import covered, is_there, policies, sha256
from graphsim.items import Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drivefeed.domain.model import Policy
    from graphsim.bodies import Body
    from graphsim.items import Item

STEPS = 34
LEAST_STEPS = 30
LEAST_FAULTS = 5
MOST_SYNCS = 8
EVERY = 20
"""Every so many examples, rclone says what there is as well."""

_CONTENTS = (b"alpha", b"beta", b"gamma")
_NAMES = ("a.txt", "b.txt", "c.md", "d.bin", "x.txt", "sub", "new")

_STILL_DUE = (reminders.c.due_at.is_not(None), reminders.c.stage != "withdraw")
"""Withdrawals are due when the grace is over, which no example lives to see."""

_DELAY = 30.0
"""Seconds by which delta lags behind, where it does."""
_LONGER_THAN_A_DELAY = 900.0

_few = st.integers(0, 7)

seen: Counter[str] = Counter()
"""What all examples of the process came to, for the report of the test."""

rclone_differed: set[bool] = set()
"""Not empty from a difference on: an example that is played again is compared again."""


class Drives(RuleBasedStateMachine):
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

    # --- Graph, and the engine --------------------------------------------------------------

    @rule(number=st.integers(0, len(FAULTS) - 1))
    def fault(self, number: int) -> None:
        self.steps += 1
        self._arm(number)

    def _arm(self, number: int) -> None:
        kind, options = FAULTS[number % len(FAULTS)]
        waiting = {one.kind for one in self.armed if one.count}
        if (kind in REORDERS and waiting & STALE) or (kind in STALE and waiting & REORDERS):
            # An older state that comes last is what counts, by all that is documented.
            kind = "duplicate"
            options = {"op": "delta"}
        self.armed.append(self.ground.sim.faults.add(kind, **options))

    @rule(state=st.sampled_from(["tokens", "locked", "cutoff", "delay", "id_only", "removed"]))
    def whim(self, state: str) -> None:
        self.steps += 1
        quirks = self.drive.quirks
        if state == "tokens":
            self.drive.expire_tokens()
        elif state == "delay":
            quirks.delay = 0.0 if quirks.delay else _DELAY
        elif state in {"locked", "cutoff"}:
            setattr(quirks, state, not getattr(quirks, state))
        else:
            quirks.tombstone_fields = state

    @precondition(lambda self: self.syncs < MOST_SYNCS)
    @rule(number=st.integers(0, len(FAULTS) - 1), seconds=st.sampled_from([0, 10, 400]))
    def sync(self, number: int, seconds: int) -> None:
        self.steps += 1
        self.syncs += 1
        self._arm(number)
        self.ground.run(self._sync(seconds))

    async def _sync(self, seconds: int) -> None:
        await self.stand.sync()
        if seconds:
            self.ground.clock.advance(seconds)
            await self.stand.work()

    # --- the end ----------------------------------------------------------------------------

    def teardown(self) -> None:
        if not hasattr(self, "stand"):
            return
        self.ground.run(self._end())

    async def _end(self) -> None:
        self._fill_up()
        await self._see_faults()
        hits = sum(one.hits for one in self.armed)
        seen.update(steps=self.steps, syncs=self.syncs, faults=hits)
        if self.steps >= LEAST_STEPS:
            seen["whole"] += 1
        for one in self.armed:
            seen[f"fault {one.kind}"] += one.hits
        self.ground.sim.faults.clear()
        quirks = self.drive.quirks
        # A delay stays: it is over when the clock has passed it, before the first quiet round.
        quirks.locked, quirks.cutoff = False, False
        for root in self.policies:
            self._bring_back(root)
        await self._until_quiet()
        await self._compare()
        if self._is_rclones_turn():
            seen["rclone"] += 1
            rclone_differed.add(True)
            await self._compare_with_rclone()
            rclone_differed.clear()

    def _fill_up(self) -> None:
        """An example that ended early goes on with edits, so that each has its length."""
        while self.steps < LEAST_STEPS:
            self._change_something()

    def _change_something(self) -> None:
        draw, few = self.chance, self.chance.randrange
        kind = draw.choice(["file", "file", "folder"])
        what = few(8)
        if what < 3:
            self.create(few(8), few(8), few(8))
        elif what < 5:
            self.edit(few(8), few(8), draw.random() < 0.3)
        elif what == 5:
            self.move(kind, few(8), few(8), few(8))
        elif what == 6:
            self.remove(kind, few(8), draw.random() < 0.5)
        else:
            self.restore(few(8), draw.random() < 0.5)

    async def _see_faults(self) -> None:
        """Where too few faults struck so far, others do in a few more rounds, and strike changes.

        Hypothesis leaves some rules out of most examples, the looks often among them.
        """
        for _ in range(40):
            missing = LEAST_FAULTS - sum(one.hits for one in self.armed)
            if missing <= 0:
                return
            for _ in range(missing):
                self._arm(self.chance.randrange(len(FAULTS)))
                self._change_something()
            quirks = self.drive.quirks
            quirks.locked = quirks.cutoff = False
            await self._sync(400)
        raise AssertionError(f"the faults do not strike: {self.armed}")

    def _bring_back(self, identifier: str) -> None:
        """Restore a connected folder, with what it lies in."""
        item = self.drive.tree.items[identifier]
        if item.parent_id is not None:
            self._bring_back(item.parent_id)
        item = self.drive.tree.items[identifier]
        if item.deleted:
            (top,) = [one for one in self.drive.tree.removed_with(identifier) if one.deleted_top]
            self.drive.restore(top.id, new_ids=False)

    async def _until_quiet(self) -> None:
        """Have rounds until one begins, ends, and leaves nothing to be done.

        One that was under way already shows an older moment, and its end is all that a look comes
        to. The first that begins after the last change, with nothing left of Graph's delay on the
        clock, has to tell everything.
        """
        for _ in range(40):
            self.ground.clock.advance(_LONGER_THAN_A_DELAY)
            since = self.ground.clock.now()
            before = await self.stand.row()
            await self.stand.sync()
            row = await self.stand.row()
            has_begun = before.between_rounds and not before.settling
            has_ended = has_begun and row.between_rounds and not row.settling
            is_new = row.last_round_at is not None and row.last_round_at >= since
            is_done = not await self.stand.rows(reminders, *_STILL_DUE)
            if has_ended and is_new and row.attention is None and is_done:
                return
        raise AssertionError(f"it does not come to rest: {row}, {self.stand.errors[-3:]}")

    async def _compare(self) -> None:
        drive, stand = self.drive, self.stand
        told = {root: covered(drive, root, policy) for root, policy in self.policies.items()}
        for root, reasons in told.items():
            said = await stand.coverage(root)
            assert said == reasons, self._difference(said, reasons)
            assert await stand.attention(root) is None
        items = {key for said in told.values() for key, reason in said.items() if reason is None}
        files = {key: drive.tree.items[key] for key in items}
        assert await self._held() == {key: sha256(drive, one) for key, one in files.items()}
        assert await stand.live() == items
        paths = {"/".join(drive.tree.names(one)) for one in files.values()}
        assert set(await stand.tree()) == paths
        await self._count_downloads()

    def _difference(self, said: dict[str, Any], true: dict[str, Any]) -> str:
        """Name what the catalog says otherwise."""
        return "\n".join(
            f"{key} {self.drive.tree.items.get(key)}: {said.get(key, '-')} is {true.get(key, '-')}"
            for key in said.keys() | true.keys()
            if said.get(key, "-") != true.get(key, "-")
        )

    async def _held(self) -> dict[str, str | None]:
        """The bytes that are held of each wanted document."""
        asked = (
            select(documents.c.item_id, imports.c.sha256, imports.c.state)
            .join(imports, imports.c.id == documents.c.wanted_import_id)
            .where(documents.c.drive_id == self.stand.drive_id)
        )
        async with self.stand.catalog.read() as connection:
            rows = list(await connection.execute(asked))
        assert {row.state for row in rows} <= {State.SETTLED}
        return {row.item_id: row.sha256 for row in rows}

    async def _count_downloads(self) -> None:
        """A content is sent once for each time it is new; a fault or an edit may cost one more."""
        needless = sum(
            before == after
            for opened in self.opened.values()
            for before, after in itertools.pairwise(opened)
        )
        disturbed = sum(
            one.hits for one in self.armed if one.match.op in {"content", "download"}
        ) + self.stand.passed.count("transfer.discard.after")
        unhashed = [one for one in self.armed if {"file.hashes", "file"} & set(one.fields)]
        if any(one.hits for one in unhashed):
            rows = await self.stand.rows(imports, imports.c.reason == Reason.SAME_BYTES)
            disturbed += len(rows)
        seen["downloads"] += sum(map(len, self.opened.values()))
        assert needless <= disturbed, self.opened

    @staticmethod
    def _is_rclones_turn() -> bool:
        """The first, so that an example plays alone as it did among others; then one in so many."""
        return seen["examples"] == 1 or seen["examples"] % EVERY == 0 or bool(rclone_differed)

    async def _compare_with_rclone(self) -> None:
        """Known exclusions: what a policy skips, which rclone knows nothing of."""
        told = {root: covered(self.drive, root, policy) for root, policy in self.policies.items()}
        wanted = {key for said in told.values() for key, reason in said.items() if reason is None}
        skipped = {
            "/".join(self.drive.tree.names(self.drive.tree.items[key])): key
            for key in (one.id for one in self._live("file"))
            if key not in wanted
        }
        copied = await copy_of(self.ground.sim, self.drive)
        held = await self._held()
        ours = {
            "/".join(self.drive.tree.names(self.drive.tree.items[key])): value
            for key, value in held.items()
        }
        assert {key: value for key, value in copied.items() if key not in skipped} == ours


@pytest.fixture
def shared() -> Iterator[None]:
    seen.clear()
    yield
    ground().close()
    ground.cache_clear()


def _run(examples: int) -> None:
    run_state_machine_as_test(
        Drives,
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(dict(sorted(seen.items())))  # noqa: T201 (the figures)
    assert all(seen[f"profile {one}"] for one in Profile)
    assert seen["whole"] >= examples
    assert seen["rclone"] >= examples // EVERY
    assert seen["faults"] >= LEAST_FAULTS * examples


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_catalog_ends_equal_to_the_drive(shared: None) -> None:
    _run(60)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_it_does_so_for_a_while(shared: None) -> None:
    _run(300)


@pytest.mark.soak
@pytest.mark.timeout(20_000)
def test_it_does_so_for_a_long_time(shared: None) -> None:
    _run(5_000)
