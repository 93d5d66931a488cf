"""A daemon in this process over a drive in this process, and hands that damage what it keeps."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drivefeed.bootstrap import open_parts
from drivefeed.daemon import Daemon
from drivefeed.domain.remote import DriveRef
from drivefeed.ports import Stage
from drivefeed.services.certificate import Certificate, certify
from drivefeed.services.repair import Mended, Repair
from drivefeed.setting_sections import EmbeddingSettings, ExtractionSettings
from drivefeed.settings import ConnectionSettings
from support.daemon import drivefeed
from support.embeddings import KEY, EmbeddingService
from support.evidence import objects_in, rows_in
from support.offline import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.bootstrap import Parts
    from graphsim.serving import GraphSim
    from support.valkey import ValkeyServer

REST_SECONDS = 120.0
_SOON_MS = 3600_000
"""What is due later rests: content that is hidden, until its grace is over."""


@dataclass
class Harbour:
    """A daemon over one drive, at rest unless a test just changed something.

    Attributes:
        ids: item ids by name.
        content: SHA-256 of each file's bytes, by name.
    """

    sim: GraphSim
    data: Path
    parts: Parts = field(init=False)
    ids: dict[str, str] = field(default_factory=dict)
    content: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, folder: str | None = None) -> None:
        body = f"The crane of {name} stands in the harbour.".encode()
        self.ids[name] = self.sim.memory.create_file(f"{name}.txt", body, folder).id
        self.content[name] = hashlib.sha256(body).hexdigest()

    def edit(self, name: str) -> None:
        body = f"The crane of {name} was moved.".encode()
        self.sim.memory.replace(self.ids[name], body)
        self.content[name] = hashlib.sha256(body).hexdigest()

    def delete(self, name: str) -> None:
        self.sim.memory.delete(self.ids.pop(name))
        del self.content[name]

    async def lose_changes(self) -> None:
        """Have the position move past everything that happened, which nobody ever tells of then."""
        (row,) = self.rows("SELECT id, account_id, remote_id FROM drives")
        ref = DriveRef(row["account_id"], row["remote_id"])
        link: str | None = f"/drives/{row['remote_id']}/root/delta?token=latest"
        page = await self.parts.source.delta(ref, link)
        assert page.delta_link
        assert not page.items
        self.tamper("UPDATE drives SET cursor = ? WHERE id = ?", page.delta_link, row["id"])

    # --- what is true -----------------------------------------------------------------------

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        return rows_in(self.data, sql, *values)

    def tamper(self, sql: str, *values: Any) -> None:
        """Change a row behind everybody's back."""
        with closing(sqlite3.connect(self.data / "catalog.sqlite", timeout=30)) as database:
            done = database.execute(sql, values)
            assert done.rowcount, sql
            database.commit()

    def live(self, name: str) -> dict[str, Any]:
        """The import that search shows of a file."""
        (row,) = self.rows(
            "SELECT imports.*, documents.id AS document FROM documents JOIN imports ON "
            "imports.id = live_import_id WHERE item_id = ?",
            self.ids[name],
        )
        return row

    def key(self, name: str) -> str:
        one = self.live(name)
        return f"{one['org_id']}/{one['document_id']}/{one['id']}/{one['round']}"

    def charges(self) -> list[Any]:
        return self.rows("SELECT import_id, sha256, pages FROM ledger ORDER BY id")

    def objects(self) -> dict[str, Path]:
        return objects_in(self.data)

    def downloads(self, since: int) -> int:
        return self.sim.log.count("content", since=since)

    def command(self, *words: str, ok: int) -> str:
        """Run a command on the data folder, in a process of its own."""
        return drivefeed(
            *("--data", str(self.data), *words),
            cwd=self.data.parent,
            ok=(ok,),
        ).stdout

    # --- verify and repair ------------------------------------------------------------------

    async def verify(self, **more: Any) -> Certificate:
        parts = self.parts
        return await certify(
            parts.catalog,
            parts.source,
            parts.store,
            parts.index.rounds(),
            points_of=parts.index.points_of,
            **more,
        )

    async def repair(self, found: Certificate, *, foreign: bool = False) -> Mended:
        parts = self.parts
        work = Repair(
            parts.catalog, parts.source, parts.store, parts.index, removes_foreign=foreign
        )
        return await work.mend(found)

    def unrest(self) -> Any:
        """Say what is not as the drive is; nothing where it is, and nothing is under way."""
        wanted = {self.ids[name]: content for name, content in self.content.items()}
        found = self.rows(
            "SELECT item_id, sha256 FROM documents JOIN imports "
            "ON imports.id = live_import_id AND round = live_round AND state = 'settled' "
            "AND shown = 1"
        )
        live = {row["item_id"]: row["sha256"] for row in found}
        moving = self.rows(
            "SELECT stage, subject_id FROM reminders WHERE owner IS NOT NULL OR due_at < ? "
            "AND stage NOT IN ('discover', 'index')",
            self.parts.catalog.clock.now() + _SOON_MS,
        )
        queued = self.rows("SELECT id FROM index_jobs WHERE state = 'queued'")
        settling = self.rows("SELECT id FROM drives WHERE settling OR pages_in_round > 0")
        is_done = live == wanted and not moving and not queued and not settling
        return None if is_done else (live, wanted, moving, queued, settling)

    async def rest(self) -> None:
        try:
            async with asyncio.timeout(REST_SECONDS):
                while self.unrest() is not None:  # noqa: ASYNC110 - rows that others write
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"no rest: {self.unrest()}") from None


@asynccontextmanager
async def harbour(
    sim: GraphSim,
    service: EmbeddingService,
    valkey: ValkeyServer,
    data: Path,
    *names: str,
    **more: Any,
) -> AsyncIterator[Harbour]:
    """Run a daemon over graphsim's drive, with files of these names, while the block lasts."""
    settings = settings_for(
        sim,
        data,
        **{
            "redis_url": valkey.url,
            "poll_seconds": 0.3,
            "shutdown_seconds": 5.0,
            "connections": [ConnectionSettings(account="sim", drive_id=sim.memory.id, name="all")],
            "embedding": EmbeddingSettings(
                provider="openai",
                model="first",
                base_url=f"{service.url}/v1",
                api_key=KEY,  # type: ignore[arg-type] - pydantic makes it a secret
                dimension=service.dimension,
            ),
            "extraction": ExtractionSettings(processes=1),
            "concurrency": dict.fromkeys((Stage.TRANSFER, Stage.INDEX), 4),
            **more,
        },
    )
    made = Harbour(sim, data)
    await asyncio.to_thread(_write_settings, data, sim, service)
    for name in names:
        made.write(name)
    made.ids["folder"] = sim.memory.create_folder("folder").id
    made.write("inner", made.ids["folder"])
    async with open_parts(settings) as parts:
        made.parts = parts
        daemon = Daemon(parts)
        running = asyncio.create_task(daemon.run())
        ready = asyncio.create_task(daemon.ready.wait())
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            ready.cancel()
            running.result()
        try:
            yield made
        finally:
            daemon.stop()
            await running


def _write_settings(data: Path, sim: GraphSim, service: EmbeddingService) -> None:
    """Write the settings where commands read them."""
    ends = sim.endpoints
    account = {
        "name": "sim",
        "tenant_id": ends.tenant_id,
        "client_id": ends.client_id,
        "client_secret": ends.client_secret,
        "authority": ends.login_url,
        "graph_url": ends.graph_url,
        "ca_file": str(ends.ca_file),
    }
    embedding = {
        "provider": "openai",
        "model": "first",
        "base_url": f"{service.url}/v1",
        "api_key": KEY,
        "dimension": service.dimension,
    }
    tables = {"[[accounts]]": account, "[embedding]": embedding}
    lines = [
        line
        for head, table in tables.items()
        for line in (head, *(f"{name} = {json.dumps(value)}" for name, value in table.items()))
    ]
    data.mkdir(parents=True, exist_ok=True)
    (data / "drivefeed.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
