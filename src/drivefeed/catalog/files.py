"""What stages need to know of a document's file: where it is, what it is called, who pauses it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, select, update

from drivefeed.catalog.documents import document_of, import_of
from drivefeed.catalog.sources import policy_from
from drivefeed.catalog.tables import connections, coverage, documents, drives, imports, items, orgs
from drivefeed.domain.errors import NotFound
from drivefeed.domain.policy_options import EMBEDDED
from drivefeed.domain.quiet import all_quiet_until
from drivefeed.domain.remote import DriveRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Row

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Document, Import, Policy


@dataclass(frozen=True, slots=True)
class File:
    """The file behind a document.

    Attributes:
        drive: how the source is asked for it; None where it did not come from a drive.
        folders: ids of the folders it lies in, outermost first.
        paused: whether every connection that admits it is paused.
        policies: those of the connections that admit it and are not paused.
        listed_size: bytes of this version as it was listed.
        is_limited: whether its organization has a page limit.
        backend: the ingestion backend that the innermost connection which admits it wants.
        own_permissions: what was last told of its permissions; see
            :class:`drivefeed.domain.delta.TreeItem`.
    """

    name: str
    source: str
    drive: DriveRef | None
    item_id: str | None
    media_type: str | None
    quick_xor: str | None
    folders: tuple[str, ...]
    paused: bool
    policies: tuple[Policy, ...] = ()
    listed_size: int | None = None
    is_limited: bool = False
    backend: str = EMBEDDED
    own_permissions: bool | None = None

    def quiet_until(self, now: int) -> int | None:
        """Return when the quiet hours end that keep it from being copied, or None without any."""
        return all_quiet_until(self.policies, now)

    @property
    def excludes_labelled(self) -> bool:
        """Whether no connection wants it if it has a sensitivity label."""
        return bool(self.policies) and all(one.labelled == "exclude" for one in self.policies)

    @property
    def excludes_own_permissions(self) -> bool:
        """Whether no connection wants it if it has permissions of its own."""
        return bool(self.policies) and all(
            one.own_permissions == "exclude" for one in self.policies
        )

    @property
    def most_bytes(self) -> int | None:
        """The largest size that any of its connections wants; None where none of them flows."""
        return max((one.max_bytes for one in self.policies), default=None)

    def deadline_ms(self, default: int) -> int:
        """Return how long a backend may take for it: the shortest deadline of its connections."""
        return min((one.deadline_ms or default for one in self.policies), default=default)


_IMPORT_PREFIX = "import_"
_WHOLE = (
    select(
        documents,
        *(column.label(_IMPORT_PREFIX + column.name) for column in imports.c),
        drives.c.account_id,
        drives.c.remote_id,
        items.c.media_type,
        items.c.quick_xor,
        items.c.own_permissions,
        orgs.c.page_limit,
    )
    .select_from(imports)
    .join(documents, documents.c.id == imports.c.document_id)
    .join(orgs, orgs.c.id == imports.c.org_id)
    .outerjoin(drives, drives.c.id == documents.c.drive_id)
    .outerjoin(
        items,
        and_(items.c.drive_id == documents.c.drive_id, items.c.item_id == documents.c.item_id),
    )
    .where(imports.c.id == bindparam("of"))
)
_ADMITTING = (
    select(connections.c.paused, connections.c.policy, connections.c.root_item_id)
    .join(coverage, coverage.c.connection_id == connections.c.id)
    .where(coverage.c.document_id == bindparam("of"), coverage.c.admitted)
)


async def fetch(catalog: Catalog, import_id: str) -> tuple[Document, Import, File]:
    """Load an import with its document and the file behind it.

    Raises:
        NotFound: there is no such import.
    """
    async with catalog.read() as connection:
        row = (await connection.execute(_WHOLE, {"of": import_id})).mappings().one_or_none()
        if row is None:
            raise NotFound(f"There is no import {import_id} in the catalog.")
        wanting = list(await connection.execute(_ADMITTING, {"of": row["id"]}))
    one = import_of({column.name: row[_IMPORT_PREFIX + column.name] for column in imports.c})
    drive = DriveRef(row["account_id"], row["remote_id"]) if row["account_id"] else None
    folders = tuple(json.loads(row["folders"]))
    file = File(
        name=row["name"],
        source=row["source"],
        drive=drive,
        item_id=row["item_id"],
        media_type=row["media_type"],
        quick_xor=row["quick_xor"],
        folders=folders,
        paused=bool(wanting) and all(each.paused for each in wanting),
        policies=tuple(policy_from(each.policy) for each in wanting if not each.paused),
        listed_size=row[_IMPORT_PREFIX + "listed_size"],
        is_limited=row["page_limit"] is not None,
        backend=_backend(wanting, folders),
        own_permissions=row["own_permissions"],
    )
    return document_of(row), one, file


def _backend(wanting: Sequence[Row[Any]], folders: tuple[str, ...]) -> str:
    """Return what the policy of the connection with the innermost root names."""
    if not wanting:
        return EMBEDDED

    def depth(each: Row[Any]) -> tuple[int, str]:
        root = each.root_item_id
        return (folders.index(root) if root in folders else -1, root)

    return policy_from(max(wanting, key=depth).policy).backend


async def placed(catalog: Catalog, document_id: str, file: File) -> None:
    """Record that the index has this name and these folders, if they are still the present ones."""
    async with catalog.write("placed", beside=True) as connection:
        await connection.execute(
            update(documents)
            .where(
                documents.c.id == document_id,
                documents.c.name == file.name,
                documents.c.folders == json.dumps(file.folders),
            )
            .values(misplaced=False)
        )
