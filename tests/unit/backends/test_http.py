"""What the client of the contract makes of every kind of answer: retry, reject, wait or hold."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.backends.contract import MOST_ANSWER_BYTES
from drivefeed.backends.http import HttpBackend
from drivefeed.backends.place import Place
from drivefeed.backends.signing import SIGNATURE_HEADER, Credential
from drivefeed.domain.errors import (
    DrivefeedError,
    NeedsAttention,
    PartDown,
    Permanent,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.outbound import Outbound
from drivefeed.ports import BackendState
from drivefeed.stages.backends import Backends
from drivefeed.stages.breaker import Breakers
from support.backends import submission
from support.clock import CountedIds, ManualClock
from support.receiver import Receiver, running_receiver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

SECRET = "a-secret-of-the-tests-4711"
URL = "https://objects.example/key?X-Amz-Signature=5ecre7"
WORKING = {"job_id": "job-1", "state": "working"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@asynccontextmanager
async def client(
    url: str, clock: ManualClock, *, way: str = "hmac", address: str | None = URL, **more: Any
) -> AsyncIterator[HttpBackend]:
    async def fresh(key: str) -> str | None:
        return address and f"{address}&key={key}"

    made = HttpBackend(
        Place("acme", url, Credential(SECRET, way), **more),  # type: ignore[arg-type]
        address=fresh,
        outbound=Outbound(),
        clock=clock,
        ids=CountedIds(),
    )
    try:
        yield made
    finally:
        await made.aclose()


def problem(status: int, code: str, **more: Any) -> tuple[int, dict[str, str], bytes]:
    headers = more.pop("headers", {})
    return status, headers, json.dumps({"code": code, "detail": "so it is", **more}).encode()


def job(**more: Any) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, json.dumps({**WORKING, **more}).encode()


ANSWERS: list[tuple[tuple[int, dict[str, str], bytes], type[DrivefeedError], Reason | None]] = [
    (problem(400, "malformed"), Permanent, Reason.BACKEND_REFUSED),
    (problem(409, "lower_seq"), Permanent, Reason.BACKEND_REFUSED),
    (problem(409, "key_reused"), Permanent, Reason.BACKEND_REFUSED),
    (problem(413, "too_large"), Permanent, Reason.TOO_LARGE),
    (problem(422, "refused", reason="encrypted"), Permanent, Reason.ENCRYPTED),
    (problem(422, "refused", reason="made up"), Permanent, Reason.BACKEND_REFUSED),
    (problem(422, "refused", reason="quota"), Permanent, Reason.BACKEND_REFUSED),
    (problem(429, "too_many", headers={"Retry-After": "7"}), Throttled, None),
    (problem(401, "unauthorized"), PartDown, None),
    (problem(403, ""), PartDown, None),
    ((404, {}, b"<html>no such page</html>"), PartDown, None),
    ((405, {}, b""), PartDown, None),
    ((302, {"Location": "http://127.0.0.1:9/elsewhere"}, b""), PartDown, None),
    ((500, {}, b"oh no"), Transient, None),
    ((502, {}, b""), PartDown, None),
    (problem(503, "unavailable", headers={"Retry-After": "60"}), PartDown, None),
    ((200, {}, b"<html>sign in</html>"), PartDown, None),
    ((200, {}, b'{"state": "working"}'), PartDown, None),
    ((200, {}, b'{"job_id": "has a space", "state": "working"}'), PartDown, None),
    ((200, {}, b"[" * (MOST_ANSWER_BYTES + 1)), PartDown, None),
]


@pytest.mark.parametrize(("answer", "kind", "reason"), ANSWERS)
async def test_every_answer_means_one_thing(
    receiver: Receiver,
    clock: ManualClock,
    answer: tuple[int, dict[str, str], bytes],
    kind: type[DrivefeedError],
    reason: Reason | None,
) -> None:
    receiver.answer = answer
    async with client(receiver.url, clock) as backend:
        with pytest.raises(kind) as raised:
            await backend.submit(submission())
    assert type(raised.value) is kind
    assert getattr(raised.value, "reason", None) is reason
    assert "acme" in str(raised.value)
    assert SECRET not in str(raised.value)
    assert "5ecre7" not in str(raised.value)


async def test_waits_are_as_long_as_the_backend_asked(
    receiver: Receiver, clock: ManualClock
) -> None:
    async with client(receiver.url, clock) as backend:
        receiver.answer = problem(429, "too_many", headers={"Retry-After": "7"})
        with pytest.raises(Throttled) as throttled:
            await backend.status("job-1")
        assert throttled.value.seconds == 7
        receiver.answer = problem(503, "unavailable", headers={"Retry-After": "60"})
        with pytest.raises(PartDown) as down:
            await backend.status("job-1")
        assert down.value.wait_ms == 60_000


async def test_what_is_down_is_not_asked_until_its_breaker_closes(
    receiver: Receiver, clock: ManualClock
) -> None:
    receiver.answers = [(503, {}, b"")]
    receiver.answer = job()
    async with client(receiver.url, clock) as backend:
        for _ in range(3):
            with pytest.raises(PartDown) as down:
                await backend.status("job-1")
            assert down.value.wait_ms
        assert len(receiver.received) == 1
        clock.turn(seconds=1)
        assert (await backend.status("job-1")).state is BackendState.WORKING


async def test_a_backend_that_is_down_says_so_until_it_is_seen_to_be_well(
    receiver: Receiver, clock: ManualClock
) -> None:
    """While nobody asks it, somebody has to look; while files do, their requests are what shows."""
    receiver.answers = [(503, {}, b"")]
    receiver.answer = 200, {}, b'{"version": "v1"}'
    async with client(receiver.url, clock) as backend:
        backends = Backends(None, {"acme": backend})
        breakers = Breakers(clock, CountedIds(), others=backends.down)
        assert breakers.open_parts() == {}
        with pytest.raises(PartDown):
            await backend.status("job-1")
        down = {"backend 'acme'": "The backend 'acme' is not available: 503"}
        assert breakers.open_parts() == down
        clock.turn(seconds=40)
        await backends.look_again()
        assert breakers.open_parts() == down
        assert len(receiver.received) == 1
        clock.turn(seconds=20)
        await backends.look_again()
    assert breakers.open_parts() == {}
    assert [one.path for one in receiver.received] == ["/v1/jobs/job-1", "/v1/health"]


async def test_one_500_is_the_files_and_three_in_a_row_are_the_backends(
    receiver: Receiver, clock: ManualClock
) -> None:
    fault = (500, {}, b"")
    receiver.answers = [fault, fault, job(), fault, fault, fault]
    raised: list[type[Exception] | None] = []
    async with client(receiver.url, clock) as backend:
        for _ in range(6):
            try:
                await backend.status("job-1")
                raised.append(None)
            except DrivefeedError as error:
                raised.append(type(error))
    assert raised == [Transient, Transient, None, Transient, Transient, PartDown]


async def test_what_is_unknown_is_no_error(receiver: Receiver, clock: ManualClock) -> None:
    async with client(receiver.url, clock) as backend:
        receiver.answer = problem(404, "unknown_job")
        assert (await backend.status("job-1")).state is BackendState.UNKNOWN
        assert await backend.cancel("job-1")
        receiver.answer = problem(404, "unknown_key")
        assert await backend.find("import-1:1") is None


async def test_each_submission_has_a_fresh_url_and_a_signature_of_its_own(
    receiver: Receiver, clock: ManualClock
) -> None:
    receiver.answer = job()
    async with client(f"{receiver.url}/prefix/", clock) as backend:
        for _ in range(2):
            assert await backend.submit(submission()) == "job-1"
    first, second = receiver.received
    assert (first.method, first.path) == ("POST", "/prefix/v1/jobs")
    sent = json.loads(first.body)
    assert sent["content"] == {"url": f"{URL}&key=o/d/i/1"}
    assert (sent["key"], sent["seq"], sent["folders"]) == ("import-1:1", 1, ["root", "docs"])
    assert first.headers[SIGNATURE_HEADER] != second.headers[SIGNATURE_HEADER]
    assert "Authorization" not in first.headers


async def test_a_backend_that_reads_the_store_gets_the_key(
    receiver: Receiver, clock: ManualClock
) -> None:
    receiver.answer = job()
    async with client(receiver.url, clock, way="bearer", by_url=False) as backend:
        await backend.submit(submission())
    (one,) = receiver.received
    assert json.loads(one.body)["content"] == {"store_key": "o/d/i/1"}
    assert one.headers["Authorization"] == f"Bearer {SECRET}"


async def test_a_store_without_urls_asks_a_person(receiver: Receiver, clock: ManualClock) -> None:
    async with client(receiver.url, clock, address=None) as backend:
        with pytest.raises(NeedsAttention, match="S3 bucket"):
            await backend.submit(submission())
    assert not receiver.received


async def test_a_redirect_takes_the_secret_nowhere(receiver: Receiver, clock: ManualClock) -> None:
    with running_receiver() as elsewhere:
        receiver.answer = (307, {"Location": f"{elsewhere.url}/v1/jobs"}, b"")
        async with client(receiver.url, clock, way="bearer") as backend:
            with pytest.raises(PartDown, match="redirects are not followed"):
                await backend.submit(submission())
        assert not elsewhere.received


async def test_a_backend_that_never_answers_is_down_after_its_deadline(clock: ManualClock) -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del reader
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        try:
            while True:  # a byte now and then is not an answer
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
        except OSError:
            writer.close()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with client(url, clock, timeout_seconds=0.3) as backend:
        with pytest.raises(PartDown, match=r"did not answer within 0\.3 seconds"):
            await backend.status("job-1")
    server.close()


async def test_nothing_is_charged_by_a_guess(receiver: Receiver, clock: ManualClock) -> None:
    receiver.answers = [job(state="done"), job(state="done", pages=0, chunks=0)]
    async with client(receiver.url, clock) as backend:
        with pytest.raises(PartDown, match="how many pages"):
            await backend.status("job-1")
        clock.turn(seconds=1)
        assert (await backend.status("job-1")).pages == 0


async def test_a_refusal_that_is_not_on_the_list_is_told_in_words(
    receiver: Receiver, clock: ManualClock
) -> None:
    receiver.answer = job(state="refused", reason="too boring", detail="we did not like it")
    async with client(receiver.url, clock) as backend:
        status = await backend.status("job-1")
    assert status.reason is Reason.BACKEND_REFUSED
    assert status.detail == "too boring: we did not like it"


@pytest.mark.parametrize(
    ("says", "ours", "words"),
    [
        (None, "backend", None),
        ("backend", "backend", None),
        ("drivefeed", "drivefeed", None),
        ("backend", "drivefeed", "says that the backend keeps the books of pages"),
        ("drivefeed", "backend", "says that drivefeed keeps the books of pages"),
    ],
)
async def test_two_who_both_keep_the_books_are_told(
    receiver: Receiver, clock: ManualClock, says: str | None, ours: str, words: str | None
) -> None:
    health = {"version": "v1"} | ({"usage_owner": says} if says else {})
    receiver.answer = 200, {}, json.dumps(health).encode()
    async with client(receiver.url, clock, usage_owner=ours) as backend:
        if words is None:
            await backend.check()
            return
        with pytest.raises(NeedsAttention, match=words):
            await backend.check()
        assert not backend.trouble, "it answers, so nothing waits for it"
