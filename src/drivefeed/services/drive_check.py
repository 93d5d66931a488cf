"""One drive listed in full and compared with the tree; nothing is changed by that.

A listing that disagrees with the tree proves nothing: it takes minutes, in which things move, and
it may lag behind. So what differs is only suspected, and each suspect is asked for by its id. What
that shows may then be taken into the tree, which decides about it as about any change.

The work is cut into pieces of a page or a few dozen items, and how far it came is on the disk with
what it found (:mod:`drivefeed.catalog.scratch`): memory stays bounded however large the drive is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drivefeed.catalog.deciding import FOLDERS
from drivefeed.catalog.rereading import Answer, differs, take_answers, tree_rows
from drivefeed.catalog.scratch_rows import Seen, Suspect
from drivefeed.catalog.tree import items_after
from drivefeed.domain.errors import CursorExpired, NeedsAttention, NotFound, Permanent, Transient
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.scratch import Scratch
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.delta import TreeItem
    from drivefeed.domain.remote import DeltaPage, RemoteItem
    from drivefeed.ports import Source

MOST_PAGES: Final = 50_000
"""Pages in one listing after which the links are taken to lead in a circle."""
_CHUNK: Final = 500
_ASKED_AT_ONCE: Final = 25
_MOST_ASKED: Final = 3
"""So often is an item asked for that gives no answer, before it is left in doubt."""
_ENOUGH: Final = 200
_MANY: Final = 1_000
"""Where a listing was wrong about the first 200 that were asked for, and more than 1,000 are left,
it is the listing that is wrong: to ask for a million items would cost a day's allowance."""
_REFUSED_ITEM: Final = frozenset({Reason.ACCESS_DENIED, Reason.DOWNLOAD_FORBIDDEN})


@dataclass(frozen=True, slots=True)
class Checked:
    """How a check of a drive ended.

    Attributes:
        listed: items that the source listed.
        suspects: items that were asked for by id.
        found: of those, what really differed.
        unclear: of those, what gave no answer.
    """

    listed: int
    suspects: int
    found: int
    unclear: int


class DriveCheck:
    """A comparison of one drive, which can be gone on with at any time.

    Args:
        source: where the drive is; its requests should take the lane that nothing waits for.
        mends: whether what an item's own answer shows is taken into the tree.
    """

    def __init__(
        self, catalog: Catalog, source: Source, scratch: Scratch, drive_id: str, *, mends: bool
    ) -> None:
        self._catalog = catalog
        self._source = source
        self.scratch = scratch
        self.drive_id = drive_id
        self._mends = mends

    async def step(self, drive: Drive) -> bool:
        """Do the next piece of work; False when there is none left.

        Raises:
            Transient, Throttled, PartDown, NeedsAttention: the source does not answer, or
                misbehaves; the piece is done again by the next call.
        """
        match await self.scratch.word("phase"):
            case "comparing":
                await self._compare(drive)
            case "asking":
                await self._ask(drive)
            case "done":
                return False
            case _:
                await self._list(drive)
        return True

    async def result(self) -> Checked:
        """Return what was found so far."""
        counts = await self.scratch.counts()
        states = {name: count for name, count in counts.items() if name != "seen"}
        unclear = states.get("unclear", 0)
        return Checked(
            listed=counts["seen"],
            suspects=sum(states.values()),
            found=sum(states.get(one, 0) for one in ("gone", "unknown", "differs")),
            unclear=unclear,
        )

    # --- listing -------------------------------------------------------------------------------

    async def _list(self, drive: Drive) -> None:
        """Take one page of a full listing, and note what it tells otherwise than the tree."""
        link = await self.scratch.word("link")
        pages = int(await self.scratch.word("pages") or 0)
        try:
            page = await self._source.delta(drive.ref, link)
        except CursorExpired:
            if link is None:
                raise Transient(f"Drive '{drive.name}' refuses to be listed.") from None
            await self.scratch.clear()
            return
        _require_progress(drive, page, link, pages)
        last = {item.item_id: item for item in page.items}
        known = await tree_rows(self._catalog, drive.drive_id, list(last))
        there = [item for item in last.values() if not item.deleted]
        await self.scratch.keep(
            {
                "link": page.next_link,
                "pages": str(pages + 1),
                "phase": "listing" if page.delta_link is None else "comparing",
                "after": "",
            },
            gone=[item.item_id for item in last.values() if item.deleted],
            seen=[_seen(item) for item in there],
            suspects=[one for item in there if (one := _suspected(item, known)) is not None],
        )

    # --- comparing -----------------------------------------------------------------------------

    async def _compare(self, drive: Drive) -> None:
        """Look through some of the tree for what was not listed."""
        after = await self.scratch.word("after") or None
        async with self._catalog.read() as connection:
            found = await items_after(connection, drive.drive_id, after, limit=_CHUNK)
        missing = await self.scratch.not_seen([one.item_id for one in found])
        is_last = len(found) < _CHUNK
        await self.scratch.keep(
            {
                "phase": "asking" if is_last else "comparing",
                "after": "" if is_last else found[-1].item_id,
            },
            suspects=[
                Suspect(one.item_id, one.parent_id, "unseen")
                for one in found
                if one.item_id in missing
            ],
        )

    # --- asking --------------------------------------------------------------------------------

    async def _ask(self, drive: Drive) -> None:
        """Ask for some suspects by id, folders before what lies in them."""
        suspects = await self.scratch.next_suspects(_ASKED_AT_ONCE)
        if not suspects:
            await self.scratch.keep({"phase": "done"})
            return
        if await self._listing_is_wrong():
            await self.scratch.give_up()
            await self.scratch.keep({"phase": "done"})
            return
        rows = await tree_rows(self._catalog, drive.drive_id, [one.item_id for one in suspects])
        answers: list[tuple[Answer, str]] = []
        try:
            for one in suspects:
                row = rows.get(one.item_id)
                answer = await self._answer(drive, one, row)
                if answer is not None:
                    answers.append((answer, answer.state(row)))
        finally:
            # What was answered before something went wrong is not asked again.
            if self._mends:
                different = [answer for answer, state in answers if state != "same"]
                await take_answers(self._catalog, drive.drive_id, different)
            for answer, state in answers:
                await self.scratch.settle(answer.item_id, state)

    async def _listing_is_wrong(self) -> bool:
        counts = await self.scratch.counts()
        is_unfounded = not any(counts.get(one) for one in ("gone", "unknown", "differs"))
        return is_unfounded and counts.get("same", 0) >= _ENOUGH and counts["open"] > _MANY

    async def _answer(self, drive: Drive, one: Suspect, row: TreeItem | None) -> Answer | None:
        try:
            remote = await self._source.item(drive.ref, one.item_id)
        except NotFound:
            return Answer(one.item_id, row, None)
        except (Permanent, Transient):
            await self._unanswered(one)
            return None
        except NeedsAttention as error:
            if error.reason not in _REFUSED_ITEM:
                raise
            await self._unanswered(one)
            return None
        return Answer(one.item_id, row, remote)

    async def _unanswered(self, one: Suspect) -> None:
        await self.scratch.put_off(one.item_id)
        if one.asked + 1 >= _MOST_ASKED:
            await self.scratch.settle(one.item_id, "unclear")


def _require_progress(drive: Drive, page: DeltaPage, link: str | None, pages: int) -> None:
    if (page.next_link is None) == (page.delta_link is None):
        raise Transient(f"A page of drive '{drive.name}' has no link, or two.")
    if page.next_link is not None and (page.next_link == link or pages >= MOST_PAGES):
        raise NeedsAttention(
            f"Drive '{drive.name}' does not come to the end of its listing.",
            reason=Reason.SOURCE_MISBEHAVES,
        )


def _seen(item: RemoteItem) -> Seen:
    return Seen(item.item_id, item.parent_id, item.name or "", item.kind not in FOLDERS)


def _suspected(item: RemoteItem, known: Mapping[str, TreeItem]) -> Suspect | None:
    row = known.get(item.item_id)
    if row is None or row.deleted:
        return Suspect(item.item_id, item.parent_id, "unknown")
    if not differs(row, item):
        return None
    return Suspect(item.item_id, item.parent_id or row.parent_id, "differs")
