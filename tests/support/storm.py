"""Imports that are played by many at once, with failures and deaths, against one page limit.

A file's name says what will become of it: ``NUMBER.ESTIMATE.PAGES.FATE`` and an ending. The pages
of a ``.pdf`` are counted once it is stored; those of others are known to the backend alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import or_, select

from drivefeed.catalog import reminders
from drivefeed.catalog.files import fetch
from drivefeed.catalog.imports import advance
from drivefeed.catalog.quota import Need
from drivefeed.catalog.quota_line import hold_or_wait
from drivefeed.catalog.tables import reminders as reminders_table
from drivefeed.catalog.waiting import ask_a_person, note_attempt
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    import random

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.reminders import Claim
    from drivefeed.domain.model import Document, Import

FATES = ("fine", "fine", "fine", "fine", "refused", "gone", "person", "twice")
"""What becomes of a file: the backend refuses it, the source lost it, a person is asked for it."""


class KilledHereError(BaseException):
    """A process died here; what it did not commit is gone."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What a file's name says of it."""

    estimate: int
    pages: int
    fate: str
    counted: bool

    @classmethod
    def of(cls, name: str) -> Fate:
        """Read a file's name."""
        _, estimate, pages, fate, ending = name.split(".")
        return cls(int(estimate), int(pages), fate, ending == "pdf")


def random_name(number: int, chance: random.Random, *, most: int) -> str:
    """Return the name of a file of 1 to ``most`` pages, whose estimate may be far off."""
    pages = chance.randint(1, most)
    estimate = max(1, round(pages * chance.choice((0.1, 0.5, 1, 2))))
    ending = "pdf" if chance.random() < 0.75 else "txt"
    return f"{number}.{estimate}.{pages}.{chance.choice(FATES)}.{ending}"


class Player:
    """Plays the stages of whatever is due, one after the other.

    Args:
        busy_ms: how long a claim lasts whose owner died.
    """

    def __init__(
        self, catalog: Catalog, owner: str, chance: random.Random, *, busy_ms: int = 1
    ) -> None:
        self._catalog = catalog
        self._owner = owner
        self._chance = chance
        self._busy_ms = busy_ms

    async def step(self) -> bool:
        """Play one stage; False where nothing is due that nobody has."""
        now = self._catalog.clock.now()
        due = (
            select(reminders_table.c.subject_id, reminders_table.c.number)
            .where(
                reminders_table.c.due_at <= now,
                or_(reminders_table.c.owner.is_(None), reminders_table.c.busy_until < now),
                reminders_table.c.stage.in_(["transfer", "submit", "poll", "publish", "withdraw"]),
            )
            .limit(20)
        )
        async with self._catalog.read() as connection:
            found = (await connection.execute(due)).all()
        if not found:
            return False
        chosen = self._chance.choice(found)
        async with self._catalog.write("claim") as connection:
            claim = await reminders.claim(
                connection,
                subject_id=chosen.subject_id,
                number=chosen.number,
                owner=self._owner,
                now=now,
                busy_ms=self._busy_ms,
            )
        if claim is not None:
            await self._play(claim)
            async with self._catalog.write("release") as connection:
                await reminders.release(connection, claim)
        return True

    async def _play(self, claim: Claim) -> None:
        document, one, file = await fetch(self._catalog, claim.subject_id)
        fate = Fate.of(file.name)
        if self._chance.random() < 0.1:
            await note_attempt(self._catalog, claim, error="it stumbled", attempt=1)
            return
        match one.state:
            case State.DISCOVERED:
                await self._transfer(claim, one, fate)
            case State.STORED:
                if await hold_or_wait(self._catalog, claim, one, Need(fate.estimate)):
                    one = await self._advance(one, Event.SUBMITTING)
                    await self._advance(one, Event.ACCEPTED, facts={"backend_job": "job"})
            case State.SUBMITTED:
                await self._poll(one, fate)
            case State.SETTLED:
                await self._rest(document, one)
            case State.WITHDRAWING:
                await self._advance(one, Event.REMOVED, reason=one.reason)

    async def _transfer(self, claim: Claim, one: Import, fate: Fate) -> None:
        if not await hold_or_wait(self._catalog, claim, one, Need(fate.estimate)):
            return
        if fate.fate == "person" and self._chance.random() < 0.5:
            reason = Reason.ATTEMPTS_EXHAUSTED
            await ask_a_person(self._catalog, claim, reason=reason, detail="")
            return
        if fate.fate == "gone":
            await self._advance(one, Event.REFUSED, reason=Reason.GONE_AT_SOURCE)
            return
        need = Need(fate.pages, counted=True) if fate.counted else Need(fate.estimate)
        facts = {"size": 1, "sha256": f"bytes of {one.import_id}"[:64], "integrity": "verified"}
        await self._advance(one, Event.STORED, facts=facts, need=need)

    async def _poll(self, one: Import, fate: Fate) -> None:
        if one.backend_job is None:
            await self._advance(one, Event.ACCEPTED, facts={"backend_job": "job"})
        elif fate.fate == "refused":
            await self._advance(one, Event.REFUSED, reason=Reason.BACKEND_REFUSED)
        else:
            facts = {"pages": fate.pages, "shown": True}
            await self._advance(one, Event.SETTLED, facts=facts)
            if fate.fate == "twice":
                await self._advance(one, Event.SETTLED, facts=facts)

    async def _rest(self, document: Document, one: Import) -> None:
        is_live = one.as_live == document.live
        if one.shown != is_live:
            await self._advance(one, Event.PUBLISHED, facts={"shown": is_live})
        elif not is_live and document.wanted != one.import_id:
            one = await self._advance(one, Event.UNWANTED, reason=Reason.SUPERSEDED)

    async def _advance(self, one: Import, event: Event, **more: object) -> Import:
        return await advance(
            self._catalog,
            one.import_id,
            event,
            round_=one.round,
            **more,  # type: ignore[arg-type]  # as the caller says
        )
