"""Microsoft's calls: the handshake, whose calls count, and that a flood makes one look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import httpx
import pytest

from drivefeed.catalog.reminders import rest
from drivefeed.catalog.subscriptions import all_subscriptions, note_asked, watched_drives
from drivefeed.catalog.tables import reminders
from drivefeed.domain.subscription import LIFECYCLE, PATH, secret_hash
from drivefeed.outbound import Outbound
from drivefeed.services.checkups.finding import Colour
from drivefeed.services.checkups.notifications import look_at_address
from support.flood import flood
from support.waiting import until
from unit.catalog.rig import ROOT, Rig, file, folder
from unit.web.conftest import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.subscription import Subscription

WORD = "the word of the subscription"
TOKEN = "Validation: Testing client+application 100% reachability <b>"
FLOOD = 500


@dataclass
class Ear:
    """A served page that listens for one subscription."""

    rig: Rig
    subscription: Subscription
    client: httpx.AsyncClient
    path: str

    async def call(self, *words: object, path: str = "", **more: object) -> int:
        notes = [{"clientState": word, "changeType": "updated", **more} for word in words]
        answer = await self.client.post(path or self.path, json={"value": notes})
        return answer.status_code

    async def told_at(self) -> int | None:
        (drive,) = await watched_drives(self.rig.catalog)
        return drive.told_at

    async def is_due(self) -> bool:
        rows = await self.rig.rows(reminders, reminders.c.subject_id == self.rig.drive_id)
        return bool(rows and rows[0]["due_at"] is not None)


@pytest.fixture
async def ear(catalog: Catalog) -> AsyncIterator[Ear]:
    rig = await Rig.make(catalog)
    await rig.connect()
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    async with catalog.write("discover.done", beside=True) as connection:
        await rest(connection, rig.drive_id)
    (drive,) = await watched_drives(catalog)
    one = await note_asked(catalog, drive, secret_hash=secret_hash(WORD))
    path = PATH + one.subscription_id
    async with (
        serving(catalog, notifications_url="https://feed.example") as page,
        httpx.AsyncClient(base_url=page.url, trust_env=False, timeout=20) as client,
    ):
        yield Ear(rig, one, client, path)


@pytest.mark.parametrize("behind", ["", LIFECYCLE])
async def test_the_handshake_gives_the_token_back_as_plain_text(ear: Ear, behind: str) -> None:
    url = f"{ear.path}{behind}?validationToken={quote_plus(TOKEN)}"
    answer = await ear.client.post(url)
    assert (answer.status_code, answer.text) == (200, TOKEN)
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert await ear.told_at() is None


async def test_the_doctors_call_is_answered_as_microsofts(ear: Ear) -> None:
    for subscription_id, words in (
        (ear.subscription.subscription_id, "gives Microsoft's token back"),
        (None, "leads to drivefeed"),
    ):
        found = await look_at_address(
            str(ear.client.base_url),
            Outbound(),
            subscription_id=subscription_id,
            token=TOKEN,
            is_running=True,
        )
        assert (found.colour, words in found.words) == (Colour.GREEN, True), found
    assert await ear.told_at() is None


async def test_nobody_else_gets_an_echo(ear: Ear) -> None:
    for path in (f"{PATH}unknown", PATH + "x" * 2_000):
        assert (await ear.client.post(f"{path}?validationToken=echo")).status_code == 404
    long = "x" * 5_000
    assert (await ear.client.post(f"{ear.path}?validationToken={long}")).status_code == 404


async def test_it_listens_under_the_name_that_microsoft_calls(ear: Ear) -> None:
    for host, status in (("feed.example", 202), ("other.example", 421)):
        answer = await ear.client.post(
            ear.path, json={"value": [{"clientState": WORD}]}, headers={"Host": host}
        )
        assert answer.status_code == status


async def test_its_word_makes_the_drive_due(ear: Ear) -> None:
    assert await ear.call(WORD) == 202
    await until(ear.is_due, what="the drive to be due")
    assert await ear.told_at() is not None


async def test_one_true_word_among_wrong_ones_is_enough(ear: Ear) -> None:
    assert await ear.call("wrong", WORD) == 202
    await until(ear.is_due, what="the drive to be due")


@pytest.mark.parametrize("word", ["wrong", "", None, 5, [WORD], WORD.upper()])
async def test_a_forged_call_is_refused_and_wakes_nobody(ear: Ear, word: object) -> None:
    assert await ear.call(word) == 403
    assert await ear.call(WORD, path=PATH + "unknown") == 403
    assert await ear.call(word, path=ear.path + LIFECYCLE, lifecycleEvent="missed") == 403
    # A true one afterwards is heard, so whatever the others did would have been as well.
    assert await ear.told_at() is None
    assert await ear.call(WORD) == 202
    await until(ear.is_due, what="the drive to be due")


async def test_the_word_of_an_earlier_subscription_is_not_listened_to(ear: Ear) -> None:
    (drive,) = await watched_drives(ear.rig.catalog)
    await note_asked(ear.rig.catalog, drive, secret_hash=secret_hash("another"))
    assert await ear.call(WORD) == 403


async def test_a_flood_of_calls_makes_one_look(ear: Ear) -> None:
    before = await ear.rig.reminder(ear.rig.drive_id)
    url = str(ear.client.base_url.join(ear.path))
    assert await flood(url, {"value": [{"clientState": WORD}]}, FLOOD) == {202: FLOOD}
    await until(ear.is_due, what="the drive to be due")
    after = await ear.rig.reminder(ear.rig.drive_id)
    assert after["number"] == before["number"] + 1


@pytest.mark.parametrize("event", ["reauthorizationRequired", "subscriptionRemoved"])
async def test_the_end_of_a_subscription_is_heard_in_time(ear: Ear, event: str) -> None:
    assert await ear.call(WORD, path=ear.path + LIFECYCLE, lifecycleEvent=event) == 202

    async def wants_renewal() -> bool:
        (one,) = await all_subscriptions(ear.rig.catalog)
        return one.wants_renewal

    await until(wants_renewal, what="the renewal to be wanted")
    assert await ear.is_due(), "what happened at the end may have been told to nobody"


@pytest.mark.parametrize(
    "body",
    [b"", b"no json", b"[]", b'{"value": []}', b'{"value": [5]}', b"[" * 100_000, b"x" * 600_000],
)
async def test_what_is_no_call_is_refused(ear: Ear, body: bytes) -> None:
    assert (await ear.client.post(ear.path, content=body)).status_code == 400


async def test_without_an_address_of_ours_nobody_listens(catalog: Catalog) -> None:
    async with (
        serving(catalog) as page,
        httpx.AsyncClient(base_url=page.url, trust_env=False) as client,
    ):
        assert (await client.post(f"{PATH}any?validationToken=x")).status_code == 404
