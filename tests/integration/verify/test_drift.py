"""What somebody damages is named and located, mended, and then gone: nothing charged again."""

from __future__ import annotations

import asyncio
import inspect
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain.identity import point_id
from drivefeed.ports import Point
from graphsim.serving import serve
from integration.verify.rig import Harbour, harbour
from support.embeddings import embedding_service

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from drivefeed.services.invariants import Finding
    from support.valkey import ValkeyServer

pytestmark = pytest.mark.soak

NAMES = ("north", "south", "east", "west")


@dataclass(frozen=True)
class Damage:
    """What is done, which kind of drift tells of it, and what the finding must name.

    Attributes:
        downloads: how many files the repair may fetch again.
        rests: whether everything is as the drive is again afterwards.
    """

    name: str
    kind: str
    do: Callable[[Harbour], Any]
    located: Callable[[Harbour, Finding], bool]
    downloads: int = 0


def ids(one: dict[str, Any], count: int = 1) -> list[str]:
    return [point_id(one["id"], one["round"], chunk) for chunk in range(count)]


async def remove_points(it: Harbour) -> None:
    one = it.live("south")
    assert await it.parts.index.remove(import_id=one["id"], round_=one["round"])


async def hide_points(it: Harbour) -> None:
    one = it.live("south")
    assert await it.parts.index.set_live(import_id=one["id"], round_=one["round"], live=False)


async def stray_point(it: Harbour, **of: Any) -> None:
    made = Point(
        point_id="6c6f9f2e-8f0d-4c55-9c4e-0d2f6d3b7a11",
        vector=[1.0] * it.parts.index.house.current.embedder.dimension,
        text="nobody's words",
        org_id=it.live("east")["org_id"],
        document_id="nobody's",
        import_id="6c6f9f2e-8f0d-4c55-9c4e-0d2f6d3b7a12",
        round=1,
        seq=1,
        chunk=7,
        page=1,
        name="nobody's.txt",
        media_type="text/plain",
        folders=(),
        live=True,
    )
    await it.parts.index.upsert([replace(made, **of)])


async def stray_in_a_round(it: Harbour) -> None:
    one = it.live("east")
    await stray_point(it, import_id=one["id"], round=one["round"], document_id=one["document_id"])


def stray_object(it: Harbour, key: str = "") -> None:
    one = it.live("east")
    path = it.data / "objects" / (key or f"{one['org_id']}/{one['document_id']}/{one['id']}/9")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"nobody's")


def spoil_object(it: Harbour) -> None:
    path = it.objects()[it.key("north")]
    path.write_bytes(path.read_bytes()[::-1])


STRAY = "6c6f9f2e-8f0d-4c55-9c4e-0d2f6d3b7a11"
DAMAGES = [
    Damage(
        "an object deleted",
        "missing_in_store",
        lambda it: it.objects()[it.key("north")].unlink(),
        lambda it, one: one.key == it.key("north"),
        downloads=1,
    ),
    Damage(
        "an object spoilt",
        "bytes_differ",
        spoil_object,
        lambda it, one: one.key == it.key("north"),
        downloads=1,
    ),
    Damage(
        "points deleted",
        "missing_in_index",
        remove_points,
        lambda it, one: [*one.points] == ids(it.live("south")),
    ),
    Damage(
        "points hidden",
        "missing_in_index",
        hide_points,
        lambda it, one: one.import_id == it.live("south")["id"],
    ),
    Damage(
        "a stray point of nobody's",
        "extra_in_index",
        stray_point,
        lambda _, one: [*one.points] == [STRAY],
    ),
    Damage(
        "a stray point in a round",
        "missing_in_index",
        stray_in_a_round,
        lambda _, one: [*one.points] == [STRAY],
    ),
    Damage(
        "a stray object",
        "extra_in_store",
        stray_object,
        lambda it, one: bool(one.key) and str(one.key).endswith(f"{it.live('east')['id']}/9"),
    ),
    Damage(
        "an import's size",
        "missing_in_store",
        lambda it: it.tamper("UPDATE imports SET size = 1 WHERE id = ?", it.live("west")["id"]),
        lambda it, one: one.import_id == it.live("west")["id"],
        downloads=1,
    ),
    Damage(
        "an import's checksum",
        "bytes_differ",
        lambda it: it.tamper(
            "UPDATE imports SET sha256 = 'ff' WHERE id = ?", it.live("west")["id"]
        ),
        lambda it, one: one.import_id == it.live("west")["id"],
        downloads=1,
    ),
    Damage(
        "an import's number of chunks",
        "missing_in_index",
        lambda it: it.tamper("UPDATE imports SET chunks = 5 WHERE id = ?", it.live("east")["id"]),
        lambda it, one: one.import_id == it.live("east")["id"],
        downloads=1,
    ),
    Damage(
        "what search shows",
        "not_live",
        lambda it: it.tamper(
            "UPDATE documents SET live_import_id = NULL, live_round = NULL WHERE item_id = ?",
            it.ids["east"],
        ),
        lambda it, one: (
            one.import_id
            == it.rows(
                "SELECT wanted_import_id AS i FROM documents WHERE item_id = ?", it.ids["east"]
            )[0]["i"]
        ),
    ),
    Damage(
        "what is wanted",
        "misjudged",
        lambda it: it.tamper(
            "UPDATE documents SET wanted_import_id = NULL WHERE item_id = ?", it.ids["east"]
        ),
        lambda it, one: (one.item_id, one.path) == (it.ids["east"], "east.txt"),
    ),
    Damage(
        "a name in the tree",
        "changed_at_source",
        lambda it: it.tamper(
            "UPDATE items SET name = 'other.txt' WHERE item_id = ?", it.ids["east"]
        ),
        lambda it, one: (one.item_id, one.path) == (it.ids["east"], "east.txt"),
    ),
    Damage(
        "a hash in the tree",
        "changed_at_source",
        lambda it: it.tamper(
            "UPDATE items SET quick_xor = 'AAAA' WHERE item_id = ?", it.ids["east"]
        ),
        lambda it, one: one.item_id == it.ids["east"],
    ),
    Damage(
        "an item of the tree",
        "missing_in_catalog",
        lambda it: it.tamper("DELETE FROM items WHERE item_id = ?", it.ids["west"]),
        lambda it, one: (one.item_id, one.path) == (it.ids["west"], "west.txt"),
    ),
    Damage(
        "a file that a connection admits",
        "misjudged",
        lambda it: it.tamper("DELETE FROM coverage WHERE item_id = ?", it.ids["west"]),
        lambda it, one: (one.item_id, one.path) == (it.ids["west"], "west.txt"),
    ),
    Damage(
        "a lost next step",
        "forgotten",
        lambda it: [
            it.objects()[it.key("south")].unlink(),
            it.tamper(
                "UPDATE imports SET state = 'withdrawing' WHERE id = ?", it.live("south")["id"]
            ),
        ],
        lambda it, one: (
            one.import_id
            == it.rows(
                "SELECT wanted_import_id AS i FROM documents WHERE item_id = ?", it.ids["south"]
            )[0]["i"]
        ),
        downloads=1,
    ),
    Damage(
        "a counter of pages",
        "usage",
        lambda it: it.tamper("UPDATE orgs SET pages_used = pages_used + 5"),
        lambda _, one: one.org is not None,
    ),
]


async def lose_a_tombstone(it: Harbour) -> None:
    it.delete("north")
    await it.lose_changes()


async def lose_a_folder(it: Harbour) -> None:
    """The folder and its file are gone, and neither removal was told."""
    it.sim.memory.delete(it.ids.pop("folder"))
    it.ids.pop("inner")
    it.content.pop("inner")
    await it.lose_changes()


async def miss_a_file(it: Harbour) -> None:
    it.write("late")
    await it.lose_changes()


async def miss_a_move(it: Harbour) -> None:
    it.sim.memory.rename(it.ids["late"], "early.txt")
    await it.lose_changes()


async def miss_an_edit(it: Harbour) -> None:
    it.edit("late")
    await it.lose_changes()


LOSSES = [
    Damage(
        "a lost tombstone",
        "extra_in_catalog",
        lose_a_tombstone,
        lambda _, one: one.path == "north.txt" and bool(one.item_id),
    ),
    Damage(
        "a lost folder",
        "extra_in_catalog",
        lose_a_folder,
        lambda _, one: one.path == "folder/inner.txt",
    ),
    Damage(
        "a missed file",
        "missing_in_catalog",
        miss_a_file,
        lambda it, one: (one.item_id, one.path) == (it.ids["late"], "late.txt"),
        downloads=1,
    ),
    Damage(
        "a missed rename",
        "changed_at_source",
        miss_a_move,
        lambda it, one: (one.item_id, one.path) == (it.ids["late"], "early.txt"),
    ),
    Damage(
        "a missed edit",
        "changed_at_source",
        miss_an_edit,
        lambda it, one: one.item_id == it.ids["late"],
        downloads=1,
    ),
]


@pytest.mark.timeout(300)
async def test_each_damage_is_named_located_and_mended(
    own_valkey: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drivefeed.daemon.spare_the_collector", lambda: None)
    with embedding_service() as service:
        async with (
            serve() as sim,
            harbour(sim, service, own_valkey, tmp_path / "data", *NAMES, poll_seconds=3600) as it,
        ):
            await it.rest()
            assert (await it.verify()).holds
            for damage in DAMAGES:
                await _damage(it, damage)
            for loss in LOSSES:
                await _damage(it, loss, charges=loss.downloads)
            await _foreign(it)
            await _as_a_command(it)


async def _foreign(it: Harbour) -> None:
    """What drivefeed did not name stays, unless somebody says so."""
    stray_object(it, "somebody/else's")
    found = await it.verify()
    assert [one.key for one in found.drift["extra_in_store"].findings] == ["somebody/else's"]
    mended = await it.repair(found)
    assert not mended.is_whole
    assert not mended.done
    assert "somebody/else's" in it.objects()
    assert (await it.repair(found, foreign=True)).is_whole
    assert (await it.verify()).holds


async def _as_a_command(it: Harbour) -> None:
    """Through the door of the daemon that has the index."""
    await stray_point(it)
    stray_object(it)

    async def command(*words: str, ok: int) -> dict[str, Any]:
        done = await asyncio.to_thread(it.command, *words, ok=ok)
        answer: dict[str, Any] = json.loads(done)
        return answer

    found = await command("verify", "--json", ok=1)
    assert {*found["drift"]} == {"extra_in_index", "extra_in_store"}
    assert found["drift"]["extra_in_index"]["findings"][0]["points"] == [STRAY]
    alone = await command("verify", "--connection", "all", "--json", ok=0)
    assert "outside of this connection" in alone["remarks"][0]
    mended = await command("verify", "--repair", "--json", ok=0)
    assert not mended["repair"]["left"]
    assert {*mended["repair"]["done"]} == {"extra_in_index", "extra_in_store"}
    assert (await command("verify", "--json", ok=0))["holds"]


async def _damage(it: Harbour, damage: Damage, *, charges: int = 0) -> None:
    charged, mark = it.charges(), it.sim.log.last
    done = damage.do(it)
    if inspect.isawaitable(done):
        await done
    found = await it.verify()
    told = json.dumps(found.as_dict(), indent=1)
    assert damage.kind in found.drift, (damage.name, told)
    findings = found.drift[damage.kind].findings
    assert any(damage.located(it, one) for one in findings), (damage.name, told)
    mended = await it.repair(found)
    assert mended.is_whole, (damage.name, mended)
    await it.rest()
    again = await it.verify()
    assert again.holds, (damage.name, told, json.dumps(again.as_dict(), indent=1))
    assert len(it.charges()) <= len(charged) + charges, damage.name
    assert it.charges()[: len(charged)] == charged, damage.name
    assert it.downloads(mark) <= damage.downloads, damage.name
