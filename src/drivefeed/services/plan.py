"""Plan before apply: list a drive, count what a connection would import, and then connect it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from drivefeed.catalog.connecting import (
    Wanted,
    account_org,
    connect_in,
    drive_at,
    ensure_drive,
)
from drivefeed.catalog.control import wake_parked
from drivefeed.catalog.ledger import OURS
from drivefeed.catalog.planning import Counted, count
from drivefeed.catalog.sources import connection_in, fetch_drive
from drivefeed.catalog.usage import usage_of
from drivefeed.domain.errors import DrivefeedError, NeedsAttention, NotFound
from drivefeed.domain.model import Connection
from drivefeed.domain.plan import Emptiness, Plan
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import DriveRef
from drivefeed.services.listing import list_to_end, patiently
from drivefeed.stages.permissions import ask_for_permissions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.budget import Budget
    from drivefeed.domain.model import Policy
    from drivefeed.ports import Source
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.stages.backends import Backends


class Pace(Protocol):
    """The settings that a plan needs: what we may spend at Microsoft, and how often we ask."""

    def budget_of(self, tenant: str) -> Budget:
        """Return what our app may spend in a tenant, by its id or domain."""
        ...

    @property
    def poll_seconds(self) -> float:
        """How often a drive is asked for changes where its connections do not say."""
        ...


class Planning(Protocol):
    """The open parts that a plan needs; :class:`drivefeed.bootstrap.Parts` has them."""

    @property
    def settings(self) -> Pace:
        """The settings."""
        ...

    @property
    def catalog(self) -> Catalog:
        """The catalog."""
        ...

    @property
    def source(self) -> Source:
        """The source."""
        ...

    @property
    def accounts(self) -> Mapping[str, GraphAccount]:
        """The accounts by id."""
        ...

    @property
    def backends(self) -> Backends:
        """The ingestion backends."""
        ...


async def plan_connection(
    parts: Planning,
    account_id: str,
    drive_id: str,
    root_item_id: str,
    policy: Policy,
    *,
    tell: Callable[[int], None] | None = None,
    tell_asked: Callable[[int], None] | None = None,
) -> Plan:
    """List a drive as far as it is not listed yet, and count what connecting a folder would do.

    Nothing is downloaded and nothing is connected; the drive and its tree are remembered. Where
    the folder is connected already, the plan tells what the policy would change.

    Args:
        account_id: the account in the catalog, one of ``parts.accounts``.
        drive_id: the drive as Microsoft names it.
        root_item_id: the folder's driveItem id.
        policy: made by :func:`drivefeed.domain.policies.policy_of`.
        tell: called with the number of pages listed so far, after each.
        tell_asked: called with the number of files whose permissions were asked for so far; they
            are where the policy excludes by them, one request for each file.

    Raises:
        NeedsAttention: the account may not read the drive, or the permissions that the policy
            asks for, or there is no such folder in it.
    """
    drive = await known_drive(parts, account_id, drive_id)
    drive, listed_at = await list_to_end(parts.catalog, parts.source, drive, tell)
    await _ask_permissions(parts, drive, root_item_id, policy, tell_asked)
    return await _planned(parts, drive, root_item_id, policy, listed_at)


async def plan_change(parts: Planning, known: Connection, policy: Policy) -> Plan:
    """Count what another policy would do to a connection.

    Where the source cannot be asked, the tree counts as it was when it was last complete.

    Raises:
        DrivefeedError: the source cannot be asked, and the drive was never listed whole.
    """
    drive = await fetch_drive(parts.catalog, known.drive_id)
    try:
        drive, listed_at = await list_to_end(parts.catalog, parts.source, drive)
    except DrivefeedError:
        if drive.last_round_at is None:
            raise
        listed_at = drive.last_round_at
    await _ask_permissions(parts, drive, known.root_item_id, policy)
    return await _planned(parts, drive, known.root_item_id, policy, listed_at)


async def _ask_permissions(
    parts: Planning,
    drive: Drive,
    root_item_id: str,
    policy: Policy,
    tell: Callable[[int], None] | None = None,
) -> None:
    """Ask what the policy decides by and no listing tells; what was told already is not asked."""
    trial = Connection("", drive.org_id, drive.drive_id, root_item_id, "", policy)

    async def ask() -> None:
        await ask_for_permissions(
            parts.catalog, parts.source, drive, [trial], only_dirty=False, tell=tell
        )

    await patiently(parts.catalog, drive, ask)


async def known_drive(parts: Planning, account_id: str, remote_id: str) -> Drive:
    """Return a drive, remembered if it is new. One that is known keeps its account.

    Raises:
        NeedsAttention: there is no such account, or it may not read the drive.
    """
    catalog = parts.catalog
    account = parts.accounts.get(account_id)
    if account is None:
        raise NeedsAttention(
            f"There is no account {account_id}; 'drivefeed account list' tells which there are.",
            reason=Reason.MISCONFIGURED,
        )
    org_id = await account_org(catalog, account_id)
    drive_id = await drive_at(catalog, org_id, account.cloud, remote_id)
    if drive_id is None:
        try:
            remote = await parts.source.drive(DriveRef(account_id, remote_id))
        except NotFound as error:
            raise NeedsAttention(
                f"Account '{account.name}' finds no drive {remote_id}: {error}",
                reason=Reason.DRIVE_GONE,
            ) from error
        drive_id = await ensure_drive(
            catalog,
            org_id=org_id,
            account_id=account_id,
            cloud=account.cloud,
            remote=remote,
            interval_ms=int(parts.settings.poll_seconds * 1000),
        )
    return await fetch_drive(catalog, drive_id)


async def _planned(
    parts: Planning, drive: Drive, root_item_id: str, policy: Policy, listed_at: int
) -> Plan:
    counted = await count(parts.catalog, drive.drive_id, root_item_id, policy)
    if counted.root is None:
        raise NeedsAttention(
            f"Drive '{drive.name}' has no folder with the id {root_item_id}.",
            reason=Reason.FOLDER_GONE,
        )
    if not counted.root.is_container:
        raise NeedsAttention(
            f"'{counted.folder}' in drive '{drive.name}' is no folder. Connect the folder that it "
            "lies in, and name it with --include.",
            reason=Reason.MISCONFIGURED,
        )
    tally, known = counted.tally, counted.known
    (usage,) = await usage_of(parts.catalog, drive.org_id)
    is_ours = parts.backends.usage_owner(policy.backend) == OURS
    return Plan(
        org_id=drive.org_id,
        account_id=drive.account_id,
        remote_drive_id=drive.remote_id,
        drive_id=drive.drive_id,
        drive_name=drive.name,
        root_item_id=root_item_id,
        folder=counted.folder,
        policy=policy,
        listed_at=listed_at,
        connection_id=known.connection_id if known else None,
        connection_name=known.name if known else None,
        found=tally.found,
        files=tally.files,
        size=tally.size,
        unsized=tally.unsized,
        present=tally.present,
        pages=tally.pages,
        fresh_pages=tally.fresh_pages,
        free_pages=usage.free if is_ours else None,
        shared=None if tally.sharing_unknown else tally.shared,
        units=tally.units,
        minutes=_budget_of(parts, drive.account_id).minutes_for(tally.units),
        types=tally.types,
        skipped=tally.skipped,
        first=tuple(tally.first),
        emptiness=await _emptiness(parts.source, drive, counted),
        change=counted.change,
    )


def _budget_of(parts: Planning, account_id: str) -> Budget:
    """Return what the gate in front of an account reckons with."""
    account = parts.accounts.get(account_id)
    # One that cannot be used for now has no tenant here; its budget is as everywhere then.
    return parts.settings.budget_of(account.app[0] if account is not None else "")


async def _emptiness(source: Source, drive: Drive, counted: Counted) -> Emptiness | None:
    if counted.tally.files:
        return None
    if counted.tally.found:
        return Emptiness.NOTHING_ELIGIBLE
    if counted.root is not None and counted.is_bare:
        try:
            folder = await source.item(drive.ref, counted.root.item_id)
        except DrivefeedError:
            return Emptiness.NOTHING_FOUND
        if folder.child_count:
            # It says that it holds something, and shows nothing of it.
            return Emptiness.NOTHING_PERMITTED
    return Emptiness.NOTHING_FOUND


async def apply_plan(
    parts: Planning, plan: Plan, *, name: str, actor: str, url: str | None = None
) -> str:
    """Connect what was planned, or change the policy; applying it again changes nothing.

    Args:
        name: what the connection is called.
        actor: who does it, for the audit log; :func:`drivefeed.cli.context.os_user` names them.
        url: how whoever connects it named it.

    Returns:
        The connection's id.
    """
    catalog = parts.catalog
    wanted = Wanted(
        plan.drive_id, plan.root_item_id, name, plan.policy, plan=figures_of(plan), url=url
    )
    async with catalog.write("plan.apply") as connection:
        connection_id = await connect_in(
            connection, wanted, fresh_id=catalog.ids.new(), actor=actor
        )
        one = await connection_in(connection, connection_id)
    if one is not None and not one.paused:
        # What was under way when it was disconnected waits for nobody else.
        await wake_parked(catalog, connection_id)
    return connection_id


def figures_of(plan: Plan) -> dict[str, int]:
    """Return what a connection keeps of its plan: the fixed denominator of its progress."""
    return {"files": plan.files, "bytes": plan.size, "pages": plan.pages, "at": plan.listed_at}
