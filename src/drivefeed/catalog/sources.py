"""Orgs, accounts, drives and connections as rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, bindparam, exists, func, select, update

from drivefeed.catalog import reminders
from drivefeed.catalog.dialect import batches
from drivefeed.catalog.documents import PAYLOAD_SCHEMA, reason_of
from drivefeed.catalog.receipts import DISCONNECTED
from drivefeed.catalog.tables import connections, drives
from drivefeed.catalog.tables import reminders as reminders_table
from drivefeed.domain.errors import NotFound
from drivefeed.domain.model import Connection, Policy
from drivefeed.domain.pace import REVISIT_MS
from drivefeed.domain.remote import DriveRef

if TYPE_CHECKING:
    from sqlalchemy import BindParameter, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.delta import TreeItem
    from drivefeed.domain.reasons import Reason


_POLICY_FIELDS = tuple(one.name for one in fields(Policy))
_POLICY_LISTS = ("include", "exclude", "types")


@dataclass(frozen=True, slots=True)
class Drive:
    """A drive and our position in it.

    Attributes:
        cursor: the link to follow next; None to start an enumeration.
        enumerating: whether the round under way lists everything.
        settling: whether a completed round still has decisions to make.
        changed_at: when a page told of a change last.
        pace_ms: between its rounds, where its changes suggest another pace than the settings'.
        round_link: the link with which the round under way began; None for an enumeration.
        barren_pages: pages in a row of that round that told nothing new.
        given_up: rounds before it that were given up, in a row.
        failing_since: since when the same link fails.
    """

    drive_id: str
    org_id: str
    account_id: str
    remote_id: str
    drive_type: str
    name: str
    web_url: str | None
    root_item_id: str | None
    cursor: str | None
    generation: int
    enumerating: bool
    settling: bool
    pages_in_round: int
    round_link: str | None
    barren_pages: int
    given_up: int
    failing_since: int | None
    interval_ms: int
    last_round_at: int | None
    changed_at: int | None
    pace_ms: int | None
    hold: Reason | None
    attention: Reason | None
    detail: str | None
    drive_key: str

    @property
    def ref(self) -> DriveRef:
        """How a source is asked for it."""
        return DriveRef(self.account_id, self.remote_id)

    @property
    def between_rounds(self) -> bool:
        """Whether the whole drive was listed and no round is under way."""
        return self.cursor is not None and not self.enumerating and self.pages_in_round == 0

    def item_key(self, item: TreeItem) -> str:
        """The name of an item that document and import ids are derived from."""
        return f"{self.drive_key}/{item.key}"


def drive_of(row: RowMapping) -> Drive:
    """Read a row of ``drives``."""
    return Drive(
        drive_id=row["id"],
        org_id=row["org_id"],
        account_id=row["account_id"],
        remote_id=row["remote_id"],
        drive_type=row["drive_type"],
        name=row["name"],
        web_url=row["web_url"],
        root_item_id=row["root_item_id"],
        cursor=row["cursor"],
        generation=row["generation"],
        enumerating=row["enumerating"],
        settling=row["settling"],
        pages_in_round=row["pages_in_round"],
        round_link=row["round_link"],
        barren_pages=row["barren_pages"],
        given_up=row["given_up"],
        failing_since=row["failing_since"],
        interval_ms=row["interval_ms"],
        last_round_at=row["last_round_at"],
        changed_at=row["changed_at"],
        pace_ms=row["pace_ms"],
        hold=reason_of(row["hold"]),
        attention=reason_of(row["attention"]),
        detail=row["detail"],
        drive_key=row["drive_key"],
    )


@lru_cache(maxsize=1024)
def policy_from(stored: str) -> Policy:
    """Read a policy as a row holds it; what an older version did not store is as by default."""
    values = json.loads(stored)
    known = {name: values[name] for name in _POLICY_FIELDS if name in values}
    for name in _POLICY_LISTS:
        known[name] = tuple(known.get(name, ()))
    return Policy(**known)


def connection_of(row: RowMapping) -> Connection:
    """Read a row of ``connections``; whether it is disconnected only where that was asked for."""
    return Connection(
        connection_id=row["id"],
        org_id=row["org_id"],
        drive_id=row["drive_id"],
        root_item_id=row["root_item_id"],
        name=row["name"],
        policy=policy_from(row["policy"]),
        paused=row["paused"],
        attention=reason_of(row["attention"]),
        disconnected=bool(row.get("disconnected")),
    )


async def wake_drive(connection: AsyncConnection, drive: Drive, *, due_at: int) -> None:
    """Make a drive's sync due."""
    await reminders.put(
        connection,
        subject_id=drive.drive_id,
        org_id=drive.org_id,
        stage="discover",
        due_at=due_at,
        lane=reminders.LANE_FRESH,
        payload={"schema": PAYLOAD_SCHEMA, "org_id": drive.org_id, "drive_id": drive.drive_id},
    )


# The shortest interval of its connections counts; a drive without one that flows rests.
PACE = func.coalesce(connections.c.interval_ms, drives.c.pace_ms, drives.c.interval_ms)
_SHORTEST = (
    select(func.min(PACE))
    .where(connections.c.drive_id == drives.c.id, connections.c.paused.is_(False))
    .scalar_subquery()
)
_OCCUPIED = exists().where(
    reminders_table.c.subject_id == drives.c.id,
    reminders_table.c.due_at.is_not(None) | reminders_table.c.owner.is_not(None),
)
_NOW: BindParameter[int] = bindparam("now", type_=BigInteger)
_REVISIT_AT = drives.c.told_at + bindparam("revisit_ms", type_=BigInteger)
_TOLD = drives.c.told_at.is_not(None) & (
    drives.c.woken_at.is_(None)
    | (drives.c.woken_at <= drives.c.told_at)
    # What delta shows lags behind, so that a drive is asked once more some time after the word.
    | ((drives.c.woken_at < _REVISIT_AT) & (_REVISIT_AT <= _NOW))
)
# Asked every second of an idle day, so it is put together once.
_DUE = select(drives).where(
    _SHORTEST.is_not(None),
    drives.c.last_round_at.is_(None) | (drives.c.last_round_at + _SHORTEST <= _NOW) | _TOLD,
    ~_OCCUPIED,
)


async def wake_due_drives(catalog: Catalog, *, revisit_ms: int = REVISIT_MS) -> int:
    """Make the sync due of every drive whose interval is over, or of which a change was told.

    Args:
        revisit_ms: how long after such a word the drive is asked once more.

    Returns:
        How many.
    """
    now = catalog.clock.now()
    asked = {"now": now, "revisit_ms": revisit_ms}
    async with catalog.read() as connection:
        if (await connection.execute(_DUE, asked)).first() is None:
            return 0
    async with catalog.write("wake") as connection:
        # Another scheduler may have seen them as well, and been first.
        rows = await connection.execute(_DUE, asked)
        due = [drive_of(row) for row in rows.mappings()]
        for drive in due:
            await wake_drive(connection, drive, due_at=now)
        for some in batches(drive.drive_id for drive in due):
            # A word that comes in this very millisecond is one about what is looked at now.
            await connection.execute(
                update(drives).where(drives.c.id.in_(some)).values(woken_at=now + 1)
            )
    return len(due)


# Every page asks these, and a statement takes longer to put together than to run.
_DRIVE = select(drives).where(drives.c.id == bindparam("of"))
_LOCKED_DRIVE = _DRIVE.with_for_update(key_share=True)
_ANY_CONNECTION = select(connections, DISCONNECTED.label("disconnected"))
_CONNECTION = _ANY_CONNECTION.where(connections.c.id == bindparam("of"))
_CONNECTIONS = _ANY_CONNECTION.where(connections.c.drive_id == bindparam("of")).order_by(
    connections.c.created_at
)


async def drive_in(connection: AsyncConnection, drive_id: str, *, lock: bool = False) -> Drive:
    """Load a drive within a transaction.

    Args:
        lock: whether it, its items and what is decided about them stay so until the commit.

    Raises:
        NotFound: there is no such drive.
    """
    rows = await connection.execute(_LOCKED_DRIVE if lock else _DRIVE, {"of": drive_id})
    row = rows.mappings().one_or_none()
    if row is None:
        raise NotFound(f"There is no drive {drive_id} in the catalog.")
    return drive_of(row)


async def fetch_drive(catalog: Catalog, drive_id: str) -> Drive:
    """Load a drive; raises NotFound if there is none."""
    async with catalog.read() as connection:
        return await drive_in(connection, drive_id)


async def all_drives(catalog: Catalog) -> list[Drive]:
    """Return all drives."""
    async with catalog.read() as connection:
        rows = await connection.execute(select(drives).order_by(drives.c.created_at))
        return [drive_of(row) for row in rows.mappings()]


async def connections_in(connection: AsyncConnection, drive_id: str) -> list[Connection]:
    """Return the connections of a drive, within a transaction."""
    rows = await connection.execute(_CONNECTIONS, {"of": drive_id})
    return [connection_of(row) for row in rows.mappings()]


async def followed_in(connection: AsyncConnection, drive_id: str) -> list[Connection]:
    """Return those connections of a drive that were not stopped for good."""
    found = await connections_in(connection, drive_id)
    return [one for one in found if not one.disconnected]


async def connection_in(connection: AsyncConnection, connection_id: str) -> Connection | None:
    """Return a connection by its id, within a transaction; None where there is none (any more)."""
    rows = await connection.execute(_CONNECTION, {"of": connection_id})
    row = rows.mappings().one_or_none()
    return None if row is None else connection_of(row)


async def all_connections(catalog: Catalog) -> list[Connection]:
    """Return all connections."""
    async with catalog.read() as connection:
        rows = await connection.execute(_ANY_CONNECTION.order_by(connections.c.created_at))
        return [connection_of(row) for row in rows.mappings()]


async def remote_ids_of(catalog: Catalog, account_id: str) -> list[str]:
    """Return the ids, as Microsoft knows them, of the drives that an account reads."""
    wanted = select(drives.c.remote_id).where(drives.c.account_id == account_id)
    async with catalog.read() as connection:
        return list((await connection.execute(wanted.order_by(drives.c.id))).scalars())
