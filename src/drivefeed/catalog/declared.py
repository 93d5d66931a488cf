"""Connections that a file declares, as rows: found, compared, and applied in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from drivefeed.catalog.audit_log import record
from drivefeed.catalog.connecting import Wanted, connect_in, ensure_drive_in
from drivefeed.catalog.control import set_paused_in, wake_parked
from drivefeed.catalog.sources import connection_of
from drivefeed.catalog.tables import connections, drives
from drivefeed.domain.identity import drive_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import RowMapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection, Policy
    from drivefeed.domain.remote import RemoteDrive


@dataclass(frozen=True, slots=True)
class Known:
    """A connection as the catalog has it.

    Attributes:
        declared: whether a file declares it.
        pruned: whether it is paused because the file stopped declaring it.
    """

    connection: Connection
    url: str | None
    declared: bool
    pruned: bool


@dataclass(frozen=True, slots=True)
class Declared:
    """A connection as a file declares it, resolved to ids.

    Attributes:
        interval_ms: how often its drive is asked for changes where no connection says.
        plan: what its plan counted, if that was asked for.
        resumed: the connection that it resumes, because pruning paused it.
    """

    org_id: str
    account_id: str
    cloud: str
    remote: RemoteDrive
    interval_ms: int
    root_item_id: str
    name: str
    policy: Policy
    url: str | None = None
    plan: Mapping[str, int] | None = None
    resumed: Connection | None = None


async def all_known(catalog: Catalog) -> dict[tuple[str, str, str], Known]:
    """Return all connections by (org, drive key, folder's item id), the oldest first."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(connections, drives.c.drive_key)
            .join(drives, drives.c.id == connections.c.drive_id)
            .order_by(connections.c.created_at, connections.c.id)
        )
        return {
            (row["org_id"], row["drive_key"], row["root_item_id"]): _known(row)
            for row in rows.mappings()
        }


def _known(row: RowMapping) -> Known:
    return Known(connection_of(row), row["url"], row["declared"], row["pruned"])


def place_key(one: Declared) -> tuple[str, str, str]:
    """Return what tells the place of a declared connection from all others."""
    return one.org_id, drive_key(one.cloud, one.remote.drive_id), one.root_item_id


async def apply_declared(
    catalog: Catalog, wanted: Sequence[Declared], pruned: Sequence[Connection], *, actor: str
) -> None:
    """Connect and change all that is wanted and pause what was pruned, in one transaction."""
    async with catalog.write("declare") as connection:
        for one in wanted:
            drive_id = await ensure_drive_in(
                connection,
                fresh_id=catalog.ids.new(),
                org_id=one.org_id,
                account_id=one.account_id,
                cloud=one.cloud,
                remote=one.remote,
                interval_ms=one.interval_ms,
            )
            await connect_in(
                connection,
                Wanted(
                    drive_id,
                    one.root_item_id,
                    one.name,
                    one.policy,
                    plan=one.plan,
                    url=one.url,
                    declared=True,
                ),
                fresh_id=catalog.ids.new(),
                actor=actor,
            )
            if one.resumed is not None:
                await set_paused_in(connection, one.resumed, paused=False, actor=actor)
        for each in pruned:
            await connection.execute(
                update(connections)
                .where(connections.c.id == each.connection_id)
                .values(paused=True, declared=False, pruned=not each.paused)
            )
            await record(
                connection,
                org_id=each.org_id,
                actor=actor,
                action="connection.pruned",
                subject_id=each.connection_id,
                before={"paused": each.paused, "declared": True},
                after={"paused": True, "declared": False},
            )
    for one in wanted:
        if one.resumed is not None:
            await wake_parked(catalog, one.resumed.connection_id)
