"""Permissions of one file: whether they are its own, or only what its folder has.

A listing cannot tell. Its ``shared`` facet is shown on what merely lies in a shared folder as well
("Scanning permissions hierarchies" of the scan guidance), and not on a file that was taken away
from those who may see its folder. So each file is asked for by itself.

Source: "List who has access to a file" of Graph's reference: a permission that is inherited has
``inheritedFrom``. What that holds cannot be relied on, and it was reported to be ``{}``; on a
permission of the file's own the property is not there (microsoft-graph-devx-api#223). An inherited
grant was once reported without it (onedrive-api-docs#1261); such a file counts as one with
permissions of its own, and is kept out rather than let in. ``Files.Read.All`` is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from drivefeed.domain.errors import NeedsAttention, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.budget import COST_PERMISSIONS
from drivefeed.sources.graph.errors import Scene
from drivefeed.sources.graph.links import full_link
from drivefeed.sources.graph.one_file import Question, ask_of_file, place_of

if TYPE_CHECKING:
    from drivefeed.sources.graph.budget import Lane
    from drivefeed.sources.graph.client import GraphClient

_QUESTION = Question(
    Scene.PERMISSIONS,
    unknown=Reason.PERMISSIONS_UNKNOWN,
    largest=4 * 1024 * 1024,
    cost=COST_PERMISSIONS,
)
_MOST_PAGES = 50
_OWNER = "owner"


async def has_own_permissions(client: GraphClient, drive_id: str, item_id: str, lane: Lane) -> bool:
    """Ask for a file's permissions; see :meth:`drivefeed.ports.Source.has_own_permissions`."""
    base = client.account.base_url
    link = f"{base}{place_of(drive_id, item_id)}/permissions"
    seen = 0
    for _ in range(_MOST_PAGES):
        body = await ask_of_file(client, link, _QUESTION, drive_id=drive_id, lane=lane)
        permissions, further = _page_of(body)
        if any(_is_own(one, is_personal=client.account.is_personal) for one in permissions):
            return True
        seen += len(permissions)
        if further is None:
            break
        link = full_link(further, base)
    else:
        raise Transient(f"Microsoft Graph went on telling {Scene.PERMISSIONS} without an end.")
    if not seen and not client.account.is_personal:
        # Somebody may open every file there is; who is told nobody is told too little.
        raise NeedsAttention(
            f"Microsoft Graph told this account nothing of {Scene.PERMISSIONS}.",
            reason=Reason.PERMISSIONS_UNKNOWN,
        )
    return False


def _page_of(body: bytes | None) -> tuple[list[dict[str, Any]], str | None]:
    try:
        found: Any = msgspec.json.decode(body or b"")
    except msgspec.DecodeError:
        found = None
    listed = found.get("value") if isinstance(found, dict) else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise Transient("Microsoft Graph answered with no list of a file's permissions.")
    link = found.get("@odata.nextLink")
    return listed, link if isinstance(link, str) and link else None


def _is_own(permission: dict[str, Any], *, is_personal: bool) -> bool:
    """Tell whether a permission is the file's own.

    Nobody can take a file of a personal drive away from its owner, whose grant says nothing there.
    """
    if is_personal and _OWNER in (permission.get("roles") or ()):
        return False
    return permission.get("inheritedFrom") is None
