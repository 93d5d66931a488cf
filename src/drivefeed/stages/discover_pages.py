"""A page of a drive's changes: fetched, looked at for links that lead nowhere, applied whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.catalog import pages, pages_rounds
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.delta_guards import (
    LONGEST_FAILING_MS,
    RoundSoFar,
    leads_nowhere,
    wait_after,
)
from drivefeed.domain.errors import CursorExpired, NeedsAttention, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.stages.discover_doubts import completed, is_half
from drivefeed.stages.discover_groups import has_another_root, with_those_at_hand

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.remote import DeltaPage
    from drivefeed.stages.discover_ahead import ReadingAhead


class RoundGivenUp(NeedsAttention):
    """A round led nowhere and begins again, after ``wait_ms``.

    Attributes:
        given_up: how many rounds in a row ended so; the first one concerns nobody yet.
    """

    def __init__(self, message: str, *, given_up: int) -> None:
        super().__init__(message, reason=Reason.SOURCE_MISBEHAVES)
        self.given_up = given_up
        self.wait_ms = wait_after(given_up)


async def follow_page(
    catalog: Catalog, source: ReadingAhead, drive: Drive, *, after_deaths: bool = False
) -> Drive:
    """Fetch the next page of a drive's changes and apply it whole; begin a listing where needed.

    Pages behind it that are there already are applied together with it.

    Anybody may do so at any time but while a round settles: a page that was applied by somebody
    else in the meantime is not applied again.

    Args:
        after_deaths: as for :func:`drivefeed.catalog.pages.apply_page`.

    Returns:
        The drive as it is afterwards.

    Raises:
        NeedsAttention: the source misbehaves, or may not be read.
    """
    if drive.cursor is None and not drive.enumerating:
        drive = await pages_rounds.begin_enumeration(catalog, drive)
    try:
        with passing(catalog.checkpoint, "page.fetch"):
            page = await source.delta(drive.ref, drive.cursor)
    except CursorExpired:
        return await _begin_anew(catalog, drive)
    except Transient:
        fresh = await _fresh_start(catalog, source, drive)
        if fresh is None:
            raise
        drive, page = fresh
    if (page.next_link is None) == (page.delta_link is None):
        raise Transient(f"A page of drive '{drive.name}' has no link, or two.")
    so_far = RoundSoFar(
        cursor=drive.cursor,
        pages=drive.pages_in_round,
        barren=drive.barren_pages,
        enumerating=drive.enumerating,
        given_up=drive.given_up,
    )
    why = leads_nowhere(so_far, page)
    if why is None and has_another_root(drive, page):
        # All ids are others now; what is still the same is found by a listing of everything.
        return await pages_rounds.begin_enumeration(catalog, drive)
    if why is not None:
        now = await pages_rounds.give_up_round(catalog, drive)
        raise RoundGivenUp(
            f"Microsoft Graph leads a listing of drive '{drive.name}' in a circle: {why}. It "
            "begins again by itself after a while, and nothing is removed meanwhile.",
            given_up=now.given_up,
        )
    if any(is_half(one) for one in page.items):
        page = await completed(catalog, source, drive, page)
    else:
        with passing(catalog.checkpoint, "page.fetch"):
            page = await with_those_at_hand(source, drive, page)
    return await pages.apply_page(catalog, drive, page, after_deaths=after_deaths)


async def _begin_anew(catalog: Catalog, drive: Drive) -> Drive:
    """The link is no longer valid: list everything, at once but not for ever."""
    if drive.enumerating and drive.cursor is None:
        raise Transient(f"Drive '{drive.name}' refuses to start an enumeration.") from None
    anew = await pages_rounds.begin_enumeration(catalog, drive)
    if anew.given_up > 1:
        raise RoundGivenUp(
            f"Microsoft Graph let the links of {anew.given_up} listings of drive '{drive.name}' "
            "expire before they ended. It is listed again by itself after a while.",
            given_up=anew.given_up,
        ) from None
    return anew


async def _fresh_start(
    catalog: Catalog, source: ReadingAhead, drive: Drive
) -> tuple[Drive, DeltaPage] | None:
    """Where the same link has failed for hours, list everything, if *that* can be begun.

    The position is given up only with the first page of the listing in hand, so that a service
    that is down altogether costs nothing.

    Returns:
        The drive at its new beginning and the first page; None to go on with the same link.
    """
    if drive.cursor is None:
        return None
    since = await pages_rounds.note_failing(catalog, drive)
    if catalog.clock.now() - since < LONGEST_FAILING_MS:
        return None
    try:
        page = await source.delta(drive.ref, None)
    except (CursorExpired, Transient):
        return None
    return await pages_rounds.begin_enumeration(catalog, drive), page
