"""How bytes come over the wire, and how they do not: quirks 51 to 71 of downloads."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain.errors import Transient
from drivefeed.domain.redact import redact
from drivefeed.domain.remote import DriveRef
from drivefeed.sources.graph import download
from graphsim.bodies import SyntheticBody
from integration.graph_source.kit import HurriedClock, account_of, content, source_of
from quirks.stand import ref

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.sources.graph import GraphSource
    from graphsim.items import Item
    from graphsim.serving import GraphSim
    from quirks.stand import Docs


BODY = SyntheticBody(9, 3_000_000)
BYTES = BODY.read(0, BODY.size)


class Wire:
    """A file of three megabytes, and a source that is asked for it."""

    def __init__(self, sim: GraphSim, source: GraphSource, drive: DriveRef, file: Item) -> None:
        self.sim, self.source, self.drive, self.file = sim, source, drive, file

    async def get(self, **more: Any) -> bytes:
        return await content(self.source, self.drive, self.file.id, **more)

    def fault(self, kind: str, *, op: str = "download", **options: Any) -> None:
        self.sim.faults.add(kind, op=op, **options)

    def asked(self, op: str) -> list[Any]:
        return [one for one in self.sim.log.entries() if one.op == op]

    def ranges(self) -> list[str | None]:
        return [one.range for one in self.asked("download")]


@pytest.fixture
async def wire(sim: GraphSim) -> AsyncIterator[Wire]:
    source = source_of(account_of(sim), HurriedClock(), read_timeout=2.0)
    yield Wire(sim, source, DriveRef("sim", sim.memory.id), sim.memory.create_file("a.txt", BODY))
    await source.aclose()


async def test_51_the_download_host_sees_no_token(wire: Wire) -> None:
    wire.fault("truncate", after=1_000_000)
    assert await wire.get() == BYTES
    assert wire.sim.log.leaked_authorization() == []
    assert not any(one.had_authorization for one in wire.asked("download"))


async def test_52_a_redirect_is_followed(wire: Wire) -> None:
    assert await wire.get() == BYTES
    assert [one.status for one in wire.asked("content")] == [302]


async def test_52_a_body_that_comes_at_once_is_taken(wire: Wire) -> None:
    wire.fault("inline", op="content", count=-1)
    assert await wire.get() == BYTES
    assert wire.asked("download") == []


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_53_a_refused_url_is_replaced(wire: Wire, status: int) -> None:
    wire.fault("status", status=status)
    assert await wire.get() == BYTES
    assert len(wire.asked("content")) == 2


async def test_53_once_and_no_more(wire: Wire) -> None:
    wire.fault("expired_url", count=-1)
    with pytest.raises(Transient):
        await wire.get()
    assert len(wire.asked("content")) == len(wire.asked("download")) == 2


async def test_53_each_url_is_fetched_right_before_it_is_used_and_kept_nowhere(
    docs: Docs, tmp_path: Path
) -> None:
    stand = docs.stand
    stand.drive.create_file("late.txt", BODY, docs.docs.id)
    stand.sim.faults.add("status", op="download", status=500)
    stand.sim.faults.add("truncate", op="download", after=1_000_000, skip=1)
    await stand.sync()
    await stand.pass_time(60)
    assert "docs/late.txt" in await stand.tree()
    order = [one.op for one in stand.sim.log.entries() if one.op in {"content", "download"}]
    assert order == ["content", "download"] * (len(order) // 2)
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as database:
        assert "tempauth" not in "".join(database.iterdump())
    assert not any("tempauth" in words for words in stand.errors)


def test_56_a_url_that_gets_into_a_sentence_is_blanked() -> None:
    said = redact(
        "GET https://host/_layouts/15/download.aspx?UniqueId=1&tempauth=v1.eyJh.b-c failed"
    )
    assert "eyJh" not in said
    assert "UniqueId=1" in said


@pytest.mark.parametrize("kind", ["truncate", "reset"])
async def test_60_a_cut_is_gone_on_with_from_there(wire: Wire, kind: str) -> None:
    wire.fault(kind, after=1_000_000)
    assert await wire.get() == BYTES
    first, second = wire.ranges()
    assert first is None
    assert second is not None
    assert 0 < int(second.removeprefix("bytes=").rstrip("-")) <= 1_000_000


@pytest.mark.parametrize("kind", [None, "ignore_if_range"])
async def test_60_not_with_another_version(wire: Wire, kind: str | None) -> None:
    wire.fault("truncate", after=1_000_000)
    if kind is not None:
        wire.fault(kind, count=-1)

    def change() -> None:
        if wire.sim.memory.tree.items[wire.file.id].ctag_version == 1:
            wire.sim.memory.replace(wire.file.id, SyntheticBody(10, 3_000_000))

    with pytest.raises(Transient, match="changed while it was copied"):
        await wire.get(meanwhile=change)


@pytest.mark.parametrize("with_length", [True, False])
@pytest.mark.parametrize("cut", [True, False])
async def test_62_a_body_that_is_compressed_unasked(
    wire: Wire,
    *,
    with_length: bool,
    cut: bool,
) -> None:
    text = SyntheticBody(3, 400_000)
    file = wire.sim.memory.create_file("b.txt", text)
    wire.fault("gzip", count=-1, with_length=with_length)
    if cut:
        wire.fault("truncate", after=100_000)
    assert await content(wire.source, wire.drive, file.id) == text.read(0, text.size)


async def test_63_a_range_that_is_ignored_is_not_appended(wire: Wire) -> None:
    wire.fault("truncate", after=1_000_000)
    wire.fault("ignore_range", count=-1)
    assert await wire.get() == BYTES


async def test_63_another_part_than_asked_for_is_not_taken(wire: Wire) -> None:
    wire.fault("truncate", after=1_000_000)
    wire.fault("wrong_range", count=1)
    assert await wire.get() == BYTES
    assert len(wire.asked("download")) == 3


async def test_68_bytes_are_bytes(docs: Docs) -> None:
    got = await content(docs.stand.source, ref(docs.stand), docs.a.id)
    assert got == b"contents of a"


async def test_71_a_host_that_goes_silent_is_left(wire: Wire) -> None:
    wire.fault("stall", after=1_000_000, seconds=30)
    assert await wire.get() == BYTES
    assert len(wire.asked("download")) == 2


async def test_71_a_host_that_only_drips_is_left(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "SLOWEST", download.SLOWEST / 240)
    wire.fault("drip", size=1_000, seconds=0.02)
    assert await wire.get() == BYTES
    assert len(wire.asked("download")) == 2
