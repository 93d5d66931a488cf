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
from urllib.parse import quote

import httpx
import msgspec

from drivefeed.domain.errors import NeedsAttention, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.budget import COST_PERMISSIONS
from drivefeed.sources.graph.errors import Scene, broken
from drivefeed.sources.graph.http import read_body
from drivefeed.sources.graph.links import full_link

if TYPE_CHECKING:
    from drivefeed.sources.graph.budget import Lane
    from drivefeed.sources.graph.client import GraphClient

_LARGEST = 4 * 1024 * 1024
_MOST_PAGES = 50
_GONE = frozenset({404, 410})
_NOT_TOLD = frozenset({400, 403, 405, 501})
_OWNER = "owner"


async def has_own_permissions(client: GraphClient, drive_id: str, item_id: str, lane: Lane) -> bool:
    """Ask for a file's permissions; see :meth:`drivefeed.ports.Source.has_own_permissions`."""
    base = client.account.base_url
    place = f"/drives/{quote(drive_id, safe='!')}/items/{quote(item_id, safe='!')}"
    link = f"{base}{place}/permissions"
    seen = 0
    for _ in range(_MOST_PAGES):
        permissions, further = _page_of(await _asked(client, link, drive_id, lane))
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


async def _asked(client: GraphClient, link: str, drive_id: str, lane: Lane) -> bytes:
    async with client.answer(
        lambda: client.raw_request(link), lane=lane, cost=COST_PERMISSIONS
    ) as response:
        if response.status_code >= httpx.codes.BAD_REQUEST:
            refusal = await client.refusal(response)
            if refusal.status in _NOT_TOLD and not refusal.throttles:
                text = refusal.sentence(Scene.PERMISSIONS)
                raise NeedsAttention(text, reason=Reason.PERMISSIONS_UNKNOWN)
            # A 404 may be the whole drive's.
            scene = Scene.ITEM if refusal.status in _GONE else Scene.PERMISSIONS
            raise await client.judge(refusal, scene, drive_id, lane)
        await client.gate.passed()
        try:
            return await read_body(response, _LARGEST)
        except httpx.HTTPError as error:
            raise broken(error, Scene.PERMISSIONS) from error


def _page_of(body: bytes) -> tuple[list[dict[str, Any]], str | None]:
    try:
        found: Any = msgspec.json.decode(body)
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
