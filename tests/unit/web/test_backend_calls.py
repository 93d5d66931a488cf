"""A backend says that a job ended: its poll is due now, and nobody learns anything else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from drivefeed.backends.signing import SIGNATURE_HEADER, Credential, Gate
from drivefeed.catalog.reminders import postpone
from drivefeed.domain.lifecycle import Event
from drivefeed.web.backend_calls import Caller
from support.clock import ManualClock
from support.receiver import running_receiver
from support.sample_backend import sample
from unit.catalog.rig import ROOT, Rig, file, folder
from unit.web.conftest import serving

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Import

SECRET = "a-secret-of-the-tests-4711"
TARGET = "/v1/backends/acme/calls"


@pytest.fixture
async def rig(catalog: Catalog) -> Rig:
    made = await Rig.make(catalog)
    await made.connect()
    await made.enumerate([ROOT, folder("docs"), file("a", "docs")])
    return made


async def waiting(rig: Rig) -> Import:
    """An import whose poll is due in half a minute."""
    one = await rig.import_of("a")
    await rig.advance(one, Event.STORED, facts={"sha256": "s", "size": 10})
    await rig.advance(one, Event.SUBMITTING, facts={"backend": "acme"})
    await rig.advance(one, Event.ACCEPTED, facts={"backend_job": "job-1"})
    async with rig.catalog.write() as connection:
        await postpone(connection, one.import_id, due_at=rig.catalog.clock.now() + 30_000)
    return one


async def call(
    url: str, catalog: Catalog, body: object, *, target: str = TARGET, secret: str = SECRET
) -> int:
    written = json.dumps(body).encode()
    headers = Credential(secret).headers(
        catalog.clock, catalog.ids, method="POST", target=target, body=written
    )
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.post(url + target, content=written, headers=headers)).status_code


async def test_a_call_makes_the_poll_due_now_once(catalog: Catalog, rig: Rig) -> None:
    one = await waiting(rig)
    async with serving(catalog, credentials={"acme": Credential(SECRET)}) as page:
        assert await rig.due(one.import_id) == ("poll", 30_000)
        assert await call(page.url, catalog, {"key": f"{one.import_id}:1"}) == 202
        assert await rig.due(one.import_id) == ("poll", 0)
        number = (await rig.reminder(one.import_id))["number"]
        assert await call(page.url, catalog, {"key": f"{one.import_id}:1"}) == 202
        assert (await rig.reminder(one.import_id))["number"] == number, "it is due already"


async def test_what_is_unknown_is_answered_alike_and_changes_nothing(
    catalog: Catalog, rig: Rig
) -> None:
    one = await waiting(rig)
    known = {"acme": Credential(SECRET), "other": Credential(SECRET)}
    async with serving(catalog, credentials=known) as page:
        for key in ("nothing:1", f"{one.import_id}:2", one.import_id, f"{one.import_id}:x"):
            assert await call(page.url, catalog, {"key": key}) == 202
        other = "/v1/backends/other/calls"
        assert await call(page.url, catalog, {"key": f"{one.import_id}:1"}, target=other) == 202
        for body in ({}, [], {"key": 1}, {"key": "x" * 81}, {"key": "x" * 5_000}):
            assert await call(page.url, catalog, body) == 400
    assert await rig.due(one.import_id) == ("poll", 30_000)


async def test_without_the_secret_nothing_happens(catalog: Catalog, rig: Rig) -> None:
    one = await waiting(rig)
    body = {"key": f"{one.import_id}:1"}
    async with serving(catalog, credentials={"acme": Credential(SECRET)}) as page:
        assert await call(page.url, catalog, body, secret="another-secret-123") == 401
        assert await call(page.url, catalog, body, target="/v1/backends/none/calls") == 401
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.post(page.url + TARGET, json=body)).status_code == 401
    assert await rig.due(one.import_id) == ("poll", 30_000)


def test_calls_have_an_allowance_that_fills_again() -> None:
    now = 100.0
    caller = Caller(Gate(Credential(SECRET), ManualClock()), now=lambda: now)
    assert [caller.may_call() for _ in range(201)].count(True) == 200
    now += 0.125
    assert [caller.may_call() for _ in range(8)].count(True) == 6


def test_the_sample_calls_as_the_contract_says() -> None:
    backend = sample.Backend(secret=SECRET)
    with running_receiver() as receiver:
        backend.call(receiver.url + TARGET, "import-1:1")
    (one,) = receiver.received
    gate = Gate(Credential(SECRET), ManualClock(backend.now() * 1000))
    assert json.loads(one.body) == {"key": "import-1:1"}
    refused = gate.refusal(
        authorization="",
        signed=one.headers[SIGNATURE_HEADER],
        method="POST",
        target=one.path,
        body=one.body,
    )
    assert refused == ""
