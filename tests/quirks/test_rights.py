"""Quirks of drives and rights: what cannot be read is kept, and said (GRAPH B-1 28, B-4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from drivefeed.catalog.access_tables import audit_log
from drivefeed.catalog.connecting import ensure_account
from drivefeed.catalog.tables import accounts
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph import errors, refusals
from quirks.stand import FREE, SimCredential, plain_account

if TYPE_CHECKING:
    from quirks.stand import Docs, Stand


async def test_28_a_drive_that_is_gone_keeps_its_documents_and_is_seldom_asked(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.quirks.cutoff = True
    cursor = (await stand.row()).cursor
    await stand.sync()
    row = await stand.row()
    assert (row.attention, row.cursor) == (Reason.DRIVE_GONE, cursor)
    asked = len(stand.asked("delta"))
    await stand.pass_time(6 * 3600, step=300)
    assert len(stand.asked("delta")) - asked <= 7
    assert await stand.live() == {docs.a.id, docs.b.id}
    stand.drive.quirks.cutoff = False
    stand.drive.delete(docs.b.id)
    await stand.pass_time(3700, step=300)
    assert (await stand.row()).attention is None
    assert await stand.live() == {docs.a.id}


async def test_88_a_locked_site_pauses_the_drive_and_keeps_everything(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.create_file("new.txt", b"new", docs.docs.id)
    stand.drive.quirks.locked = True
    await stand.sync()
    row = await stand.row()
    assert row.attention is Reason.SITE_LOCKED
    assert "locked or archived" in str(row.detail)
    assert await stand.live() == {docs.a.id, docs.b.id}
    stand.drive.quirks.locked = False
    await stand.pass_time(3700, step=300)
    assert (await stand.row()).attention is None
    assert len(await stand.live()) == 3


async def test_nested_connections_share_one_stream_and_one_download(docs: Docs) -> None:
    stand = docs.stand
    rounds = len(stand.asked("delta"))
    await stand.connect(docs.sub, FREE)
    await stand.sync()
    assert len(stand.asked("delta")) - rounds <= 2
    assert stand.downloads() == 2
    assert await stand.coverage(docs.sub) == {docs.b.id: None}
    stand.drive.move(docs.sub.id, docs.other.id)
    await stand.sync()
    assert await stand.live() == {docs.a.id, docs.b.id}, "the inner one still wants it"
    assert await stand.coverage(docs.docs) == {docs.a.id: None}
    stand.drive.delete(docs.sub.id)
    await stand.sync()
    assert await stand.attention(docs.sub) == Reason.FOLDER_GONE
    assert await stand.live() == {docs.a.id, docs.b.id}
    assert stand.downloads() == 2


async def _another_account(stand: Stand, sign_in: str) -> str:
    """Add an account whose token is good for everything; the first one loses its right."""
    other = await ensure_account(stand.catalog, stand.org_id, "other")
    async with stand.catalog.write("connect") as connection:
        await connection.execute(
            update(accounts).where(accounts.c.id == other).values(sign_in=sign_in)
        )
    stand.accounts[other] = plain_account(stand.sim, other)
    good, bad = SimCredential(stand.sim), SimCredential(stand.sim, permissions=["User.Read.All"])
    stand.source._credential = lambda account: good if account.account_id == other else bad
    stand.source._clients.clear()
    return other


async def test_a_right_that_one_account_lost_is_made_up_for_by_another(docs: Docs) -> None:
    stand = docs.stand
    other = await _another_account(stand, "secret")
    stand.drive.delete(docs.b.id)
    new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
    await stand.sync()
    row = await stand.row()
    assert (row.account_id, row.attention) == (other, None)
    assert await stand.live() == {docs.a.id, new.id}
    assert stand.downloads() == 3
    actions = [one["action"] for one in await stand.rows(audit_log)]
    assert actions.count("drive.account_changed") == 1


async def test_somebody_who_signed_in_is_not_taken_for_a_view_of_the_whole_drive(
    docs: Docs,
) -> None:
    stand = docs.stand
    other = await _another_account(stand, "user")
    await stand.sync()
    row = await stand.row()
    assert row.account_id != other
    assert row.attention is Reason.CONSENT_MISSING
    assert await stand.live() == {docs.a.id, docs.b.id}


@pytest.mark.parametrize(("status", "code"), [(400, "invalidRequest"), (404, "itemNotFound")])
def test_87_both_refusals_of_a_person_without_a_onedrive_mean_that(status: int, code: str) -> None:
    refused = refusals.no_onedrive(errors.Refusal(status, (code.lower(),)), "ann@contoso.example")
    assert isinstance(refused, NeedsAttention)
    assert refused.reason is Reason.NO_ONEDRIVE
