"""A drive whose pages a test writes by hand, and stages that a test plays by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from drivefeed.catalog import pages
from drivefeed.catalog.connecting import connect, ensure_account, ensure_drive, ensure_org
from drivefeed.catalog.files import fetch
from drivefeed.catalog.imports import advance
from drivefeed.catalog.pages_rounds import begin_enumeration
from drivefeed.catalog.sources import fetch_drive
from drivefeed.catalog.tables import connections, coverage, documents, imports, orgs, reminders
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.model import Policy
from drivefeed.domain.remote import DeltaPage, ItemKind, RemoteDrive, RemoteItem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.model import Import
    from drivefeed.domain.reasons import Reason

ROOT = RemoteItem("root", name="root", kind=ItemKind.ROOT)


def folder(item_id: str, parent: str = "root", name: str | None = None) -> RemoteItem:
    return RemoteItem(item_id, parent_id=parent, name=name or item_id, kind=ItemKind.FOLDER)


def file(
    item_id: str, parent: str = "root", content: str = "1", name: str | None = None, **more: Any
) -> RemoteItem:
    """A file whose hash is its content; every telling of another content has another eTag."""
    return RemoteItem(
        item_id,
        parent_id=parent,
        name=name or f"{item_id}.txt",
        kind=ItemKind.FILE,
        **{"size": 10, "etag": f"etag-{content}", "quick_xor": content, **more},
    )


def gone(*item_ids: str) -> list[RemoteItem]:
    return [RemoteItem(item_id, deleted=True) for item_id in item_ids]


@dataclass
class Rig:
    """One org with one drive; the folder ``docs`` is connected unless a test says otherwise."""

    catalog: Catalog
    drive_id: str
    org_id: str
    connections: dict[str, str] = field(default_factory=dict)
    links: int = 0

    @classmethod
    async def make(cls, catalog: Catalog, *, name: str = "org") -> Rig:
        org_id = await ensure_org(catalog, name)
        account_id = await ensure_account(catalog, org_id, "account")
        drive_id = await ensure_drive(
            catalog,
            org_id=org_id,
            account_id=account_id,
            cloud="global",
            remote=RemoteDrive("b!drive", "business", "Drive", None, "root"),
            interval_ms=60_000,
        )
        return cls(catalog, drive_id, org_id)

    async def connect(self, root: str = "docs", policy: Policy | None = None) -> str:
        """Connect a folder, or change its policy; the scan is left to the test."""
        self.connections[root] = await connect(
            self.catalog,
            drive_id=self.drive_id,
            root_item_id=root,
            name=root,
            policy=policy or Policy(),
        )
        return self.connections[root]

    async def scan(self, root: str = "docs") -> None:
        while await pages.scan_some(self.catalog, self.connections[root]):
            pass

    async def drive(self) -> Drive:
        return await fetch_drive(self.catalog, self.drive_id)

    def page(self, items: Iterable[RemoteItem], *, last: bool) -> DeltaPage:
        self.links += 1
        link = f"https://graph/link/{self.links}"
        return DeltaPage(tuple(items), None if last else link, link if last else None)

    async def apply(self, *contents: Sequence[RemoteItem], ends: bool = True) -> Drive:
        """Apply pages; the last of them ends the round unless told otherwise."""
        drive = await self.drive()
        for number, items in enumerate(contents, start=1):
            last = ends and number == len(contents)
            drive = await pages.apply_page(self.catalog, drive, self.page(items, last=last))
        return drive

    async def settle(self) -> int:
        steps = 1
        while await pages.settle_some(self.catalog, self.drive_id):
            steps += 1
            assert steps < 1_000, "settling never ends"
        return steps

    async def enumerate(self, *contents: Sequence[RemoteItem]) -> None:
        """A whole enumeration as a new generation, settled."""
        await begin_enumeration(self.catalog, await self.drive())
        await self.apply(*contents)
        await self.settle()

    async def round(self, *contents: Sequence[RemoteItem]) -> None:
        """A whole incremental round, settled."""
        await self.apply(*contents)
        await self.settle()

    async def rows(self, table: Any, *where: Any) -> list[dict[str, Any]]:
        async with self.catalog.read() as connection:
            found = await connection.execute(select(table).where(*where))
            return [dict(row) for row in found.mappings()]

    async def document(self, item_id: str) -> dict[str, Any]:
        (row,) = await self.rows(documents, documents.c.item_id == item_id)
        return row

    async def wanted(self) -> dict[str, str]:
        """Version keys of what is wanted, by item."""
        keys = {row["id"]: row["version_key"] for row in await self.rows(imports)}
        return {
            row["item_id"]: keys[row["wanted_import_id"]].removeprefix("quickxor:")
            for row in await self.rows(documents)
            if row["wanted_import_id"]
        }

    async def live(self) -> set[str]:
        return {row["item_id"] for row in await self.rows(documents) if row["live_import_id"]}

    async def coverage(self, root: str = "docs") -> dict[str, Reason | None]:
        """Skip reasons by item; None where a connection admits it."""
        where = coverage.c.connection_id == self.connections[root]
        return {
            row["item_id"]: None if row["admitted"] else row["reason"]
            for row in await self.rows(coverage, where)
        }

    async def attention(self, root: str = "docs") -> str | None:
        (row,) = await self.rows(connections, connections.c.id == self.connections[root])
        return row["attention"]

    async def reminder(self, subject_id: str) -> dict[str, Any]:
        (row,) = await self.rows(reminders, reminders.c.subject_id == subject_id)
        return row

    async def due(self, subject_id: str) -> tuple[str, int] | None:
        """The stage that is due for a subject, and in how many milliseconds."""
        row = await self.reminder(subject_id)
        if row["due_at"] is None:
            return None
        return row["stage"], row["due_at"] - self.catalog.clock.now()

    async def pages_used(self) -> int:
        (row,) = await self.rows(orgs, orgs.c.id == self.org_id)
        return int(row["pages_used"])

    async def import_of(self, item_id: str) -> Import:
        """The wanted import of a file, or its only one."""
        document = await self.document(item_id)
        key = document["wanted_import_id"]
        if key is None:
            (row,) = await self.rows(imports, imports.c.document_id == document["id"])
            key = row["id"]
        return (await fetch(self.catalog, key))[1]

    async def advance(self, one: Import, event: Event, **more: Any) -> Import:
        return await advance(self.catalog, one.import_id, event, round_=one.round, **more)

    async def bring_live(
        self, item_id: str, *, pages: int = 1, sha256: str | None = None
    ) -> Import:
        """Play the stages of a file's wanted import until it is settled."""
        one = await self.import_of(item_id)
        content = sha256 or f"{item_id}-{one.version_key}"
        facts = {"size": 10, "sha256": content, "integrity": "verified"}
        one = await self.advance(one, Event.STORED, facts=facts)
        one = await self.advance(one, Event.SUBMITTING)
        one = await self.advance(one, Event.ACCEPTED, facts={"backend_job": f"job-{one.round}"})
        return await self.advance(one, Event.SETTLED, facts={"pages": pages, "shown": True})

    async def withdraw(self, one: Import) -> Import:
        """Play the end of a withdrawal."""
        if one.state is State.SETTLED:
            one = await self.advance(one, Event.UNWANTED)
        return await self.advance(one, Event.REMOVED, reason=one.reason)

    async def publish(self, item_id: str) -> Import:
        document, one, _ = await fetch(self.catalog, (await self.import_of(item_id)).import_id)
        return await self.advance(
            one, Event.PUBLISHED, facts={"shown": one.as_live == document.live}
        )
