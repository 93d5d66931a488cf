"""A connection that is left: Microsoft is told to call no more before a receipt is whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert

from drivefeed.catalog.access_tables import credentials
from drivefeed.catalog.erasing import disconnect
from drivefeed.catalog.receipts import Receipt, keep_receipt, receipts
from drivefeed.catalog.sources import all_connections
from drivefeed.catalog.subscriptions import (
    all_subscriptions,
    forget_subscription,
    note_asked,
    note_granted,
    watched_drives,
)
from drivefeed.catalog.subscriptions_due import due_subscriptions
from drivefeed.services.erasing import Erasures
from unit.catalog.rig import ROOT, file, folder

if TYPE_CHECKING:
    from support.clock import ManualClock
    from unit.catalog.rig import Rig

HOUR_MS = 3_600_000


@pytest.fixture
async def told(rig: Rig, clock: ManualClock) -> Rig:
    """A drive that was listed, of whose changes Microsoft tells us."""
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    (drive,) = await watched_drives(rig.catalog)
    async with rig.catalog.write("connect") as connection:
        await connection.execute(
            insert(credentials).values(
                id="credential",
                org_id=rig.org_id,
                account_id=drive.account_id,
                kind="secret",
                sealed=b"sealed",
                key_id="key",
                updated_at=clock.now(),
            )
        )
    one = await note_asked(rig.catalog, drive, secret_hash="x" * 64)
    await note_granted(rig.catalog, one, remote_id="r", expires_at=clock.now() + HOUR_MS)
    return rig


async def leave(rig: Rig, *, erases: bool, signed_out: bool) -> Receipt:
    (each,) = await all_connections(rig.catalog)
    return await disconnect(
        rig.catalog, each, erases=erases, signed_out=signed_out, actor="somebody"
    )


async def receipt_after(rig: Rig) -> Receipt:
    """Return the receipt after another piece of work; done twice, as after a kill."""
    for _ in range(2):
        await Erasures(rig.catalog, owner="clerk").tick()
    (one,) = await receipts(rig.catalog)
    return one


async def told_to_call_no_more(rig: Rig) -> None:
    due = await due_subscriptions(rig.catalog, wants=True, silence_ms=HOUR_MS)
    (one,) = due.to_end
    await forget_subscription(rig.catalog, one)


@pytest.mark.parametrize("signed_out", [False, True])
async def test_what_is_kept_is_left_once_nobody_tells_us_of_it(
    told: Rig,
    signed_out: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    receipt = await leave(told, erases=False, signed_out=signed_out)
    assert (receipt.signed_out, receipt.ended_at) == (False, None)
    receipt = await receipt_after(told)
    assert (receipt.signed_out, receipt.ended_at) == (False, None)
    assert len(await told.rows(credentials)) == 1, "it is needed to end the subscription"
    await told_to_call_no_more(told)
    receipt = await receipt_after(told)
    assert receipt.ended_at is not None
    assert receipt.signed_out is signed_out
    assert len(await told.rows(credentials)) == (0 if signed_out else 1)


async def test_what_is_erased_is_not_complete_while_we_are_told_of_it(told: Rig) -> None:
    await leave(told, erases=True, signed_out=False)
    await receipt_after(told)
    await told.withdraw(await told.import_of("a"))
    receipt = await receipt_after(told)
    assert (receipt.ended_at, receipt.items) == (None, 3)
    await told_to_call_no_more(told)
    assert (await receipt_after(told)).ended_at is not None


async def test_without_a_subscription_all_of_it_is_done_at_once(told: Rig) -> None:
    (one,) = await all_subscriptions(told.catalog)
    await forget_subscription(told.catalog, one)
    receipt = await leave(told, erases=False, signed_out=True)
    assert receipt.signed_out
    assert receipt.ended_at is not None
    assert await told.rows(credentials) == []


async def test_an_account_that_was_connected_through_again_keeps_its_credential(
    told: Rig,
) -> None:
    await leave(told, erases=False, signed_out=True)
    await told.connect("elsewhere")
    (one,) = await all_subscriptions(told.catalog)
    await forget_subscription(told.catalog, one)
    receipt = await receipt_after(told)
    assert (receipt.signs_out, receipt.signed_out) == (False, False)
    assert receipt.ended_at is not None
    assert len(await told.rows(credentials)) == 1


async def test_an_erasure_that_is_asked_for_again_goes_on_with_its_receipt(
    told: Rig, clock: ManualClock
) -> None:
    begun = await leave(told, erases=True, signed_out=False)
    async with told.catalog.write("test") as connection:
        so_far = await keep_receipt(connection, replace(begun, documents=38, imports=41))
    clock.turn(ms=HOUR_MS)
    assert await leave(told, erases=True, signed_out=False) == so_far
    # What began after the first one was complete is another one.
    async with told.catalog.write("test") as connection:
        await keep_receipt(connection, replace(so_far, ended_at=clock.now()))
    again = await leave(told, erases=True, signed_out=False)
    assert (again.at, again.documents) == (clock.now(), 0)
