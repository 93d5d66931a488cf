"""``GET …/items/{id}/permissions``: who has access to an item, and by what it inherits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphsim.items import Profile

if TYPE_CHECKING:
    from graphsim.drive import Drive
    from graphsim.items import Item
    from graphsim.pages import Question

_OWNER: dict[str, Any] = {
    "id": "1",
    "roles": ["owner"],
    "grantedToV2": {"user": {"id": "0", "displayName": "Owner"}},
}
_INHERITED: dict[str, Any] = {
    "id": "2",
    "roles": ["write"],
    "grantedToV2": {"siteGroup": {"id": "5", "displayName": "Members"}},
    # It is reported to be there, and to be empty (microsoft-graph-devx-api#223).
    "inheritedFrom": {},
}


async def list_permissions(question: Question, size: int) -> None:
    """Answer a page of an item's permissions: those of its own, or else those of its folder.

    Args:
        size: the most of them on a page.
    """
    value = _shown(question.drive, question.item)
    start = int(question.options.get("skiptoken") or 0)
    path = f"/drives/{question.drive.id}/items/{question.item.id}/permissions"
    answer = {
        "@odata.context": question.context(path.removeprefix("/")),
        "value": value[start : start + size],
    }
    if start + size < len(value):
        base = f"{question.exchange.base}{question.address.prefix}"
        answer["@odata.nextLink"] = f"{base}{path}?$skiptoken={start + size}"
    await question.exchange.json(200, answer)


def _shown(drive: Drive, item: Item) -> list[dict[str, Any]]:
    if item.id in drive.untold:
        return []
    own = drive.permissions.get(item.id, [])
    if drive.profile is Profile.PERSONAL:
        return [_OWNER, *own]
    return own or [_OWNER | {"inheritedFrom": {}}, _INHERITED]
