"""Without room, nothing new is downloaded; what is stored already is taken as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update

from drivefeed.catalog.tables import documents, imports, reminders
from drivefeed.declared_folders import connect_all
from drivefeed.domain.gate import OPEN, Gate
from drivefeed.domain.identity import object_key
from drivefeed.domain.reasons import Reason
from drivefeed.settings import ConnectionSettings
from graphsim.serving import serve
from support.evidence import objects_in
from support.offline import Offline, offline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


async def states(played: Offline) -> list[tuple[str, str, str | None]]:
    async with played.parts.catalog.read() as connection:
        rows = await connection.execute(
            select(documents.c.name, imports.c.state, imports.c.hold)
            .join(imports, imports.c.document_id == documents.c.id)
            .order_by(documents.c.name)
        )
        return [(row.name, row.state, row.hold) for row in rows]


async def bytes_of(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_a_transfer_holds_without_room_and_goes_on_with_it(tmp_path: Path) -> None:
    async with serve() as sim:
        for name in ("adopted.txt", "new.txt"):
            sim.memory.create_file(name, b"The same few words.")
        connection = ConnectionSettings(account="sim", drive_id=sim.memory.id, name="all")
        data = tmp_path / "data"
        async with offline(sim, data, connections=[connection]) as played:
            await connect_all(played.parts)
            shut = Gate(Reason.WAITING_FOR_DISK, "Only 3 MiB free.", short=frozenset({"data"}))
            played.gate = shut
            # A former process stored the bytes of one of them, and died before it could say so.
            since = sim.log.last
            await played.play()
            assert await states(played) == [
                ("adopted.txt", "discovered", "waiting_for_disk"),
                ("new.txt", "discovered", "waiting_for_disk"),
            ]
            async with played.parts.catalog.read() as reading:
                row = (
                    await reading.execute(
                        select(imports)
                        .join(documents, documents.c.id == imports.c.document_id)
                        .where(documents.c.name == "adopted.txt")
                    )
                ).one()
            key = object_key(row.org_id, row.document_id, row.id, row.round)
            await played.parts.store.put(
                key, bytes_of(b"The same few words."), content_type="text/plain", size=19
            )

            async def due_now() -> None:
                now = played.parts.catalog.clock.now()
                async with played.parts.catalog.write("due") as writing:
                    await writing.execute(
                        update(reminders)
                        .where(reminders.c.due_at.is_not(None))
                        .values(due_at=now - 1)
                    )

            await due_now()
            await played.play()
            assert (await states(played))[0] == ("adopted.txt", "stored", None)
            assert not sim.log.count("content", since=since)
            played.gate = OPEN
            await due_now()
            await played.play()
            assert {state for _, state, _ in await states(played)} == {"stored"}
            assert len(objects_in(data)) == 2
