"""Whatever happens to a drive, and whatever Graph tells of it: the catalog ends equal to it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from drivefeed.catalog.tables import reminders
from engine.compared_drive import ComparedDrive
from engine.edited_drive import seen
from engine.faults import FAULTS, REORDERS, STALE
from engine.ground import ground
from graphsim.items import Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

STEPS = 34
LEAST_STEPS = 30
LEAST_FAULTS = 5
MOST_SYNCS = 8
EVERY = 20
"""Every so many examples, rclone says what there is as well."""

_STILL_DUE = (reminders.c.due_at.is_not(None), reminders.c.stage != "withdraw")
"""Withdrawals are due when the grace is over, which no example lives to see."""

_DELAY = 30.0
"""Seconds by which delta lags behind, where it does."""
_LONGER_THAN_A_DELAY = 900.0

rclone_differed: set[bool] = set()
"""Not empty from a difference on: an example that is played again is compared again."""


class Drives(ComparedDrive):
    """A drive with a few folders, of which one or two are connected, and all that befalls it."""

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
            in_the_way = self.drive.tree.child(str(top.parent_id), top.name)
            if in_the_way is not None:
                self.drive.rename(in_the_way.id, f"made way {in_the_way.name}")
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

    @staticmethod
    def _is_rclones_turn() -> bool:
        """The first, so that an example plays alone as it did among others; then one in so many."""
        return seen["examples"] == 1 or seen["examples"] % EVERY == 0 or bool(rclone_differed)


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
    _run(300 if os.environ.get("CI") else 60)


@pytest.mark.soak
@pytest.mark.timeout(20_000)
def test_it_does_so_for_a_long_time(shared: None) -> None:
    _run(5_000)
