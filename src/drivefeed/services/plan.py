"""Plan before apply: list a drive, count what a connection would import, and then connect it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drivefeed.bootstrap import Parts
    from drivefeed.domain.model import Policy
    from drivefeed.domain.plan import Plan


async def plan_connection(
    parts: Parts, account_id: str, drive_id: str, root_item_id: str, policy: Policy
) -> Plan:
    """List a drive as far as it is not listed yet, and count what connecting a folder would do.

    Nothing is downloaded and nothing is connected. Where the folder is connected already, the plan
    tells what the policy would change.

    Args:
        account_id: the account in the catalog, one of ``parts.accounts``.
        drive_id: the drive as Microsoft names it.
        root_item_id: the folder's driveItem id.
        policy: made by :func:`drivefeed.domain.policies.policy_of`.

    Raises:
        NeedsAttention: the account may not read the drive, or the folder is not there.
    """
    raise NotImplementedError


async def apply_plan(
    parts: Parts, plan: Plan, *, name: str, actor: str, url: str | None = None
) -> str:
    """Connect what was planned, or change the policy; applying it again changes nothing.

    Args:
        name: what the connection is called.
        actor: who did it, for the audit log; see :func:`drivefeed.cli.context.os_user`.
        url: how whoever connected it named it.

    Returns:
        The connection's id.
    """
    raise NotImplementedError
