"""Erased is erased: in store, index, catalog and file; forgotten stays forgotten."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog.connecting import connect
from drivefeed.domain.model import Policy
from graphsim.serving import serve
from integration.verify.rig import Harbour, harbour
from support.embeddings import embedding_service

if TYPE_CHECKING:
    from pathlib import Path

    from support.valkey import ValkeyServer

pytestmark = pytest.mark.soak

SECONDS = 60.0


async def until(ask: Any, what: str) -> None:
    try:
        async with asyncio.timeout(SECONDS):
            while not ask():  # noqa: ASYNC110 - rows that another process writes
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(what) from None


async def command(it: Harbour, *words: str, ok: int = 0) -> Any:
    return json.loads(await asyncio.to_thread(it.command, *words, "--json", ok=ok))


async def enumerate_anew(it: Harbour) -> None:
    """The position expires: everything is listed again."""
    mark = it.sim.log.last
    it.sim.memory.expire_tokens()
    await until(lambda: it.sim.log.count("delta", since=mark) > 2, "a listing")
    await it.rest()


@pytest.mark.timeout(300)
async def test_forget_disconnect_and_erase(
    own_valkey: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drivefeed.daemon.spare_the_collector", lambda: None)
    monkeypatch.setattr("drivefeed.keeping.ERASING_SECONDS", 0.3)
    with embedding_service() as service:
        async with (
            serve() as sim,
            harbour(sim, service, own_valkey, tmp_path / "data", "north", "Secretname") as it,
        ):
            await it.rest()
            await _forget(it)
            await _erase(it)
            await _connect_again(it)


async def _forget(it: Harbour) -> None:
    before = it.content.pop("north")
    charged = it.charges()
    gone = it.key("north")
    assert (await command(it, "forget", "north.txt"))["forgotten"] == ["north.txt"]
    await it.rest()
    assert gone not in it.objects()
    await enumerate_anew(it)
    it.sim.memory.touch(it.ids["north"])
    await enumerate_anew(it)
    assert (await it.verify()).holds
    assert gone not in it.objects()
    (skipped,) = it.rows("SELECT reason FROM coverage WHERE item_id = ?", it.ids["north"])
    assert skipped["reason"] == "forgotten"
    assert await command(it, "forget", "nowhere.txt", ok=1) == {"forgotten": []}
    assert (await command(it, "forget", "north.txt", "--undo"))["remembered"] == ["north.txt"]
    it.content["north"] = before
    await it.rest()
    assert (await it.verify()).holds
    assert it.charges() == charged
    assert (await command(it, "forget", "north.txt"))["forgotten"] == ["north.txt"]
    del it.content["north"]
    await it.rest()


async def _erase(it: Harbour) -> None:
    charged = it.charges()
    await asyncio.to_thread(it.command, "connection", "disconnect", "all", "--erase", ok=3)
    assert it.objects()
    begun = await command(it, "connection", "disconnect", "all", "--erase", "--yes")
    assert begun["policy"] == "erase"

    def is_done() -> bool:
        rows = it.rows("SELECT value FROM facts WHERE name LIKE 'receipt:%'")
        return bool(rows) and json.loads(rows[0]["value"])["ended_at"] is not None

    await until(is_done, "a whole receipt")
    (receipt,) = await command(it, "connection", "receipt")
    assert receipt["documents"] == 3
    assert not it.objects()
    assert [row async for row in it.parts.index.rounds()] == []
    for table in ("items", "coverage", "connections", "index_jobs"):
        assert it.rows(f"SELECT count(*) AS n FROM {table}") == [{"n": 0}], table
    assert it.charges() == charged
    found = await it.verify()
    assert found.holds, found.as_dict()
    assert "Confirmed: the receipt" in found.remarks[-1]
    assert "Secretname" not in json.dumps(receipt)
    for table in ("documents", "imports", "import_events", "reminders", "index_jobs", "facts"):
        assert "Secretname" not in json.dumps(it.rows(f"SELECT * FROM {table}"), default=str), table
    it.tamper(
        "UPDATE documents SET name = 'Secretname.txt' WHERE item_id = ?", it.ids["Secretname"]
    )
    left = await it.verify()
    assert {*left.drift} == {"erased_left"}
    it.tamper("UPDATE documents SET name = '' WHERE item_id = ?", it.ids["Secretname"])


async def _connect_again(it: Harbour) -> None:
    """What was forgotten stays so; what comes back is charged no more."""
    charged = it.charges()
    await _connect_all(it)
    await it.rest()
    assert it.charges() == charged
    found = await it.verify()
    assert found.holds, found.as_dict()
    (skipped,) = it.rows("SELECT reason FROM coverage WHERE item_id = ?", it.ids["north"])
    assert skipped["reason"] == "forgotten"
    kept = await command(it, "connection", "disconnect", "all", "--keep")
    assert kept["ended_at"]
    await asyncio.to_thread(it.command, "resume", "all", ok=3)
    assert await command(it, "resume", ok=1) == {"resumed": []}
    (shown,) = await command(it, "status")
    assert (shown["paused"], shown["disconnected"]) == (True, True)
    it.write("after")
    assert it.unrest() is not None
    assert len(it.objects()) == 2
    await _connect_all(it)
    await it.rest()
    (shown,) = await command(it, "status")
    assert (shown["paused"], shown["disconnected"]) == (False, False)
    assert len(it.objects()) == 3
    assert (await it.verify()).holds


async def _connect_all(it: Harbour) -> None:
    (drive,) = it.rows("SELECT id, root_item_id FROM drives")
    await connect(
        it.parts.catalog,
        drive_id=drive["id"],
        root_item_id=drive["root_item_id"],
        name="all",
        policy=Policy(),
        actor="somebody",
    )
