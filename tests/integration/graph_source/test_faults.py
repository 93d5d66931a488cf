"""What goes wrong at Microsoft, shown with graphsim over HTTP."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import Any

import pytest

from drivefeed.domain.errors import (
    CursorExpired,
    NeedsAttention,
    NotFound,
    Part,
    PartDown,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import DriveRef
from drivefeed.sources.graph import ClientSecret, GraphSource
from graphsim.bodies import SyntheticBody
from graphsim.clock import ManualClock
from graphsim.serving import GraphSim, serve
from integration.graph_source.kit import (
    HurriedClock,
    PlainIds,
    RealClock,
    account_of,
    content,
    crawl,
    sim_state,
    source_of,
)


@pytest.fixture
def sim_options() -> dict[str, Any]:
    return {"page_size": 5}


@pytest.fixture
def drive(sim: GraphSim) -> DriveRef:
    return DriveRef("sim", sim.memory.id)


def a_closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


# --- enumerations ------------------------------------------------------------------------------


async def test_a_failure_in_the_middle_goes_on_from_the_same_link(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    files = {sim.memory.create_file(f"{n}", b"x").id for n in range(20)}
    page = await source.delta(drive, None)
    seen = {item.item_id for item in page.items}
    for status in (500, 502, 504):
        sim.faults.add("status", op="delta", status=status)
        with pytest.raises(Transient):
            await source.delta(drive, page.next_link)
    sim.faults.add("reset", op="delta")
    with pytest.raises(Transient):
        await source.delta(drive, page.next_link)
    sim.faults.add("truncate", op="delta", after=100)
    with pytest.raises(Transient):
        await source.delta(drive, page.next_link)
    rest, _ = await crawl(source, drive, page.next_link)
    assert files <= seen | set(rest)


@pytest.mark.parametrize("location", [True, False])
@pytest.mark.parametrize("inner", ["resyncChangesApplyDifferences", None])
async def test_410_in_all_its_shapes(
    sim: GraphSim,
    source: GraphSource,
    drive: DriveRef,
    inner: str | None,
    location: bool,  # noqa: FBT001
) -> None:
    _, link = await crawl(source, drive)
    sim.faults.add("gone", op="delta", location=location, inner=inner)
    with pytest.raises(CursorExpired):
        await source.delta(drive, link)


async def test_empty_pages_duplicates_and_odd_order_are_passed_on(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    files = {sim.memory.create_file(f"{n}", b"x").id for n in range(20)}
    for kind in ("empty_page", "empty_page", "duplicate", "shuffle"):
        sim.faults.add(kind, op="delta")
    items, _ = await crawl(source, drive)
    assert files <= set(items)


async def test_a_link_graph_does_not_understand_asks_for_a_new_enumeration(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    _, link = await crawl(source, drive)
    sim.faults.add("status", op="delta", status=400, code="invalidRequest")
    with pytest.raises(CursorExpired):
        await source.delta(drive, link)
    assert sim.log.count("drive") == 1, "the drive was asked whether it is still there"


async def test_a_locked_site_asks_a_person(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    sim.faults.add("status", op="delta", status=423, code="notAllowed")
    with pytest.raises(NeedsAttention) as caught:
        await source.delta(drive, None)
    assert caught.value.reason is Reason.SITE_LOCKED


# --- throttling --------------------------------------------------------------------------------


async def test_after_a_throttle_no_request_leaves_before_its_time(
    sim: GraphSim, source: GraphSource, drive: DriveRef, clock: HurriedClock
) -> None:
    file = sim.memory.create_file("a", b"x")
    await source.drive(drive)
    sim.faults.add("throttle", op="delta", retry_after="60")
    with pytest.raises(Throttled):
        await source.delta(drive, None)
    before = sim.log.last
    for ask in (
        source.delta(drive, None),
        source.item(drive, file.id),
        content(source, drive, file.id),
        source.drive(drive),
    ):
        with pytest.raises(Throttled) as caught:
            await ask
        assert caught.value.seconds == 60.0
    assert sim.log.last == before
    clock.advance(60)
    assert await content(source, drive, file.id) == b"x"


async def test_accounts_of_one_app_share_a_gate_and_others_do_not(
    sim: GraphSim, clock: HurriedClock
) -> None:
    accounts = {
        "a": account_of(sim, account_id="a"),
        "b": account_of(sim, account_id="b"),
        "c": account_of(sim, account_id="c", client_id="another-app"),
    }
    source = GraphSource(accounts, clock=clock, ids=PlainIds())
    try:
        sim.faults.add("throttle", op="delta", retry_after="60")
        with pytest.raises(Throttled):
            await source.delta(DriveRef("a", sim.memory.id), None)
        with pytest.raises(Throttled):
            await source.delta(DriveRef("b", sim.memory.id), None)
        with pytest.raises(NeedsAttention):
            await source.delta(DriveRef("c", sim.memory.id), None)
    finally:
        await source.aclose()


@pytest.mark.parametrize("told", [None, "0", "-1", "abc", "999999"])
async def test_odd_waits_are_bounded(
    sim: GraphSim, source: GraphSource, drive: DriveRef, told: str | None
) -> None:
    sim.faults.add("throttle", op="delta", retry_after=told)
    with pytest.raises(Throttled) as caught:
        await source.delta(drive, None)
    assert 1 < caught.value.seconds <= 3600


async def test_the_greater_of_both_headers_wins(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    sim.faults.add("throttle", op="delta", retry_after="3", headers={"RateLimit-Reset": "41"})
    with pytest.raises(Throttled) as caught:
        await source.delta(drive, None)
    assert caught.value.seconds == 41.0


async def test_a_stream_under_way_waits_for_a_throttle_and_goes_on(
    sim: GraphSim, source: GraphSource, drive: DriveRef, clock: HurriedClock
) -> None:
    body = SyntheticBody(3, 1_000_000)
    file = sim.memory.create_file("a", body)
    sim.faults.add("truncate", op="download", after=400_000)
    sim.faults.add("status", op="download", skip=1, status=429, retry_after="20")
    assert await content(source, drive, file.id) == body.read(0, body.size)
    assert sum(clock.slept) >= 20


# --- sign-in -----------------------------------------------------------------------------------


async def test_a_wrong_secret_names_microsofts_code_and_does_not_hammer(
    sim: GraphSim, drive: DriveRef, clock: HurriedClock
) -> None:
    source = source_of(account_of(sim, sign_in=ClientSecret("Pa55word")), clock)
    try:
        for _ in range(4):
            with pytest.raises(NeedsAttention, match="AADSTS7000215") as caught:
                await source.delta(drive, None)
            assert caught.value.reason is Reason.SECRET_WRONG
            assert "Pa55word" not in str(caught.value)
        assert sim.log.count("token") == 1
        clock.advance(61)
        with pytest.raises(NeedsAttention):
            await source.delta(drive, None)
        assert sim.log.count("token") == 2
    finally:
        await source.aclose()


async def test_a_sign_in_that_does_not_answer_is_a_part_that_is_down(
    sim: GraphSim, drive: DriveRef
) -> None:
    authority = f"https://127.0.0.1:{a_closed_port()}"
    source = source_of(account_of(sim, authority=authority))
    try:
        with pytest.raises(PartDown, match="could not be reached") as caught:
            await source.delta(drive, None)
        assert caught.value.part is Part.SOURCE
    finally:
        await source.aclose()


async def test_a_missing_certificate_file_is_said(sim: GraphSim, drive: DriveRef) -> None:
    source = source_of(account_of(sim, ca_file="/nowhere/ca.pem"))
    try:
        with pytest.raises(NeedsAttention, match=r"/nowhere/ca\.pem") as caught:
            await source.delta(drive, None)
        assert caught.value.reason is Reason.CA_FILE_UNUSABLE
    finally:
        await source.aclose()


async def test_a_certificate_nobody_vouches_for_is_a_part_that_is_down(
    sim: GraphSim, drive: DriveRef
) -> None:
    account = account_of(sim, graph_url=sim.endpoints.graph_https_url)
    async_source = source_of(account)
    try:
        await async_source.delta(drive, None)
    finally:
        await async_source.aclose()
    stranger = source_of(replace(account, ca_file=None))
    try:
        with pytest.raises(PartDown, match=r"(?i)certificate"):
            await stranger.delta(drive, None)
    finally:
        await stranger.aclose()


async def test_a_revoked_token_is_renewed_once_for_all(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    await source.delta(drive, None)
    assert sim.log.count("token") == 1
    sim.app.entra.grants.revoke_access_tokens()
    await asyncio.gather(*(source.delta(drive, None) for _ in range(6)))
    assert sim.log.count("token") == 2


async def test_many_first_requests_ask_for_one_token(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    await asyncio.gather(*(source.delta(drive, None) for _ in range(10)))
    assert sim.log.count("token") == 1


async def test_graph_that_does_not_answer_is_a_part_that_is_down(
    sim: GraphSim, drive: DriveRef
) -> None:
    source = source_of(account_of(sim, graph_url=f"http://127.0.0.1:{a_closed_port()}/v1.0"))
    try:
        with pytest.raises(PartDown) as caught:
            await source.delta(drive, None)
        assert caught.value.part is Part.SOURCE
    finally:
        await source.aclose()


async def test_plain_http_to_another_machine_gets_no_token(sim: GraphSim, drive: DriveRef) -> None:
    source = source_of(account_of(sim, graph_url="http://graph.example/v1.0"))
    with pytest.raises(NeedsAttention) as caught:
        await source.delta(drive, None)
    assert caught.value.reason is Reason.ADDRESS_UNUSABLE
    assert sim.log.count("token") == 0


async def test_a_changed_secret_is_used_from_the_next_call(sim: GraphSim, drive: DriveRef) -> None:
    accounts = {"sim": account_of(sim, sign_in=ClientSecret("wrong"))}
    source = GraphSource(accounts, clock=HurriedClock(), ids=PlainIds())
    try:
        with pytest.raises(NeedsAttention):
            await source.delta(drive, None)
        accounts["sim"] = account_of(sim)
        assert (await source.delta(drive, None)).delta_link
    finally:
        await source.aclose()


# --- downloads ---------------------------------------------------------------------------------

BODY = SyntheticBody(9, 3_000_000)
BYTES = BODY.read(0, BODY.size)


async def test_no_token_reaches_the_download_host(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    file = sim.memory.create_file("a", BODY)
    sim.faults.add("truncate", op="download", after=1_000_000)
    assert await content(source, drive, file.id) == BYTES
    assert sim.log.count("download") == 2
    assert sim.log.leaked_authorization() == []


async def test_progress_earns_new_tries(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    file = sim.memory.create_file("a", BODY)
    sim.faults.add("truncate", op="download", after=200_000, count=-1)
    assert await content(source, drive, file.id) == BYTES
    assert sim.log.count("download") == 15


async def test_tries_without_progress_are_bounded_and_spaced(
    sim: GraphSim, source: GraphSource, drive: DriveRef, clock: HurriedClock
) -> None:
    file = sim.memory.create_file("a", BODY)
    sim.faults.add("reset", op="download", after=1000, count=-1)
    with pytest.raises(Transient):
        await content(source, drive, file.id)
    assert sim.log.count("download") == 6
    assert [round(wait, 2) for wait in clock.slept] == [0.75, 1.5, 3.0, 6.0]


@pytest.mark.parametrize("status", [401, 403, 404, 500])
async def test_each_failure_of_the_host_gets_a_fresh_url(
    sim: GraphSim, source: GraphSource, drive: DriveRef, status: int
) -> None:
    file = sim.memory.create_file("a", BODY)
    sim.faults.add("status", op="download", status=status)
    sim.faults.add("truncate", op="download", after=1_000_000, skip=1)
    sim.faults.add("status", op="download", status=status, skip=1)
    assert await content(source, drive, file.id) == BYTES
    assert sim.log.count("content") == 4


async def test_a_url_that_expires_in_the_middle_is_replaced() -> None:
    virtual = ManualClock()
    async with serve(state=sim_state(), clock=virtual, url_lifetime=60) as sim:
        file = sim.memory.create_file("a", BODY)
        source = source_of(account_of(sim))
        try:
            sim.faults.add("truncate", op="download", after=1_000_000)
            ref = DriveRef("sim", sim.memory.id)
            assert await content(source, ref, file.id, lambda: virtual.advance(61)) == BYTES
        finally:
            await source.aclose()


@pytest.mark.parametrize("kind", ["inline", "ignore_range", "no_length", "expired_url"])
@pytest.mark.parametrize("cut", [True, False])
async def test_other_ways_to_send_a_file(
    sim: GraphSim,
    source: GraphSource,
    drive: DriveRef,
    kind: str,
    cut: bool,  # noqa: FBT001
) -> None:
    file = sim.memory.create_file("a", BODY)
    op = {"inline": "content", "ignore_range": "download", "no_length": "download"}.get(kind)
    if cut:
        sim.faults.add("truncate", op="content" if kind == "inline" else "download", after=900_000)
    sim.faults.add(kind, op=op, count=1 if kind == "expired_url" else -1)
    assert await content(source, drive, file.id) == BYTES
    assert sim.log.leaked_authorization() == []


async def test_a_file_that_changes_in_the_middle_is_begun_again_by_the_caller(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    file = sim.memory.create_file("a", BODY)
    sim.faults.add("truncate", op="download", after=1_000_000)

    def change() -> None:
        if sim.memory.tree.items[file.id].ctag_version == 1:
            sim.memory.replace(file.id, SyntheticBody(10, 3_000_000))

    with pytest.raises(Transient, match="changed while it was copied"):
        await content(source, drive, file.id, change)


async def test_bytes_unlike_the_listing_are_delivered_as_announced(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    file = sim.memory.create_file("a.docx", b"body")
    sim.faults.add("alter", op="download", extra="more")
    async with source.download(drive, file.id) as download:
        assert download.size == 8
        assert b"".join([chunk async for chunk in download.chunks()]) == b"bodymore"


async def test_a_silent_host_is_left_and_the_stream_goes_on(sim: GraphSim, drive: DriveRef) -> None:
    file = sim.memory.create_file("a", BODY)
    source = source_of(account_of(sim), read_timeout=0.5)
    try:
        sim.faults.add("stall", op="download", after=1_000_000, seconds=8)
        assert await content(source, drive, file.id) == BYTES
        assert sim.log.count("download") == 2
    finally:
        await source.aclose()


async def test_a_file_deleted_in_the_middle_is_gone(
    sim: GraphSim, source: GraphSource, drive: DriveRef
) -> None:
    file = sim.memory.create_file("a", BODY)
    sim.faults.add("truncate", op="download", after=1_000_000)

    def remove() -> None:
        if not sim.memory.tree.items[file.id].deleted:
            sim.memory.delete(file.id)

    with pytest.raises(NotFound):
        await content(source, drive, file.id, remove)


async def test_many_downloads_at_once(sim: GraphSim, drive: DriveRef) -> None:
    bodies = [SyntheticBody(n, 50_000 + n) for n in range(40)]
    files = [sim.memory.create_file(str(n), body) for n, body in enumerate(bodies)]
    source = source_of(account_of(sim), RealClock())
    try:
        got = await asyncio.gather(*(content(source, drive, file.id) for file in files))
        assert got == [body.read(0, body.size) for body in bodies]
    finally:
        await source.aclose()
