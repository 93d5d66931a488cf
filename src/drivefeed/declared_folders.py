"""The accounts and the folders that the settings declare, made known to the catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.errors import NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import DriveRef

if TYPE_CHECKING:
    from drivefeed.bootstrap import Parts
    from drivefeed.settings_folders import AccountSettings, ConnectionSettings


async def load_accounts(parts: Parts) -> None:
    """Open accounts that were added or changed since; cheap where none was."""
    await parts.signing.book.refresh()


async def add_account(parts: Parts, account: AccountSettings) -> str:
    """Make one account of the settings known; return its id."""
    account_id = await parts.signing.declare(account)
    await load_accounts(parts)
    return account_id


async def add_connection(parts: Parts, wanted: ConnectionSettings) -> str:
    """Resolve a folder once, to ids, and connect it; return the connection's id.

    Raises:
        NeedsAttention: the account or the folder does not exist, or may not be read.
    """
    from drivefeed.catalog.accounts import find_account
    from drivefeed.catalog.connecting import connect, ensure_drive, policy_at
    from drivefeed.catalog.receipts import disconnected_at
    from drivefeed.domain.policies import declared_policy

    try:
        account = await find_account(parts.catalog, wanted.account)
    except NotFound as error:
        raise NeedsAttention(
            f"A connection names the account '{wanted.account}', and there is none of that name.",
            reason=Reason.MISCONFIGURED,
        ) from error
    ref = DriveRef(account.account_id, wanted.drive_id)
    remote = await parts.source.drive(ref)
    try:
        root = await parts.source.item_by_path(ref, wanted.folder)
    except NotFound as error:
        raise NeedsAttention(
            f"Drive '{remote.name}' has no folder '{wanted.folder}'.",
            reason=Reason.FOLDER_GONE,
        ) from error
    drive_id = await ensure_drive(
        parts.catalog,
        org_id=account.org_id,
        account_id=account.account_id,
        cloud=account.cloud,
        remote=remote,
        interval_ms=int(parts.settings.poll_seconds * 1000),
    )
    gone = await disconnected_at(parts.catalog, drive_id, root.item_id)
    if gone is not None:
        # Somebody disconnected it since; 'drivefeed connect' is how it comes back.
        return gone.connection_id
    known = await policy_at(parts.catalog, drive_id, root.item_id)
    return await connect(
        parts.catalog,
        drive_id=drive_id,
        root_item_id=root.item_id,
        name=wanted.name or wanted.folder or remote.name,
        policy=declared_policy(wanted.policy, now=parts.catalog.clock.now(), known=known),
    )


async def connect_all(parts: Parts) -> list[str]:
    """Connect every folder of the settings; return the connections' ids."""
    return [await add_connection(parts, wanted) for wanted in parts.settings.connections]
