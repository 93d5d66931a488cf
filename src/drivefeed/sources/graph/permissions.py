"""Microsoft Graph's permissions as far as drivefeed needs them: which read, which are too many.

Ids and names are from Microsoft's permissions reference (github.com/microsoftgraph/
microsoft-graph-docs-contrib, concepts/includes/permissions-ids.md); what each opens from the page
"Overview of selected permissions" and the permission tables of the drive and site pages.
"""

from __future__ import annotations

from typing import Literal

GRAPH_APP_ID = "00000003-0000-0000-c000-000000000000"
"""Microsoft Graph itself, as a resource that apps ask permissions of."""

ROLE_IDS: dict[str, str] = {
    "Files.Read.All": "01d4889c-1287-42c6-ac1f-5d1e02578ef6",
    "Sites.Read.All": "332a536c-c7ef-4017-ab91-336970924f0d",
    "Sites.Selected": "883ea226-0bf2-4a8f-9f9d-92c9162a727d",
}
"""Ids of application permissions, the same in every tenant."""

SELECTED = frozenset(
    {
        "Sites.Selected",
        "Lists.SelectedOperations.Selected",
        "ListItems.SelectedOperations.Selected",
        "Files.SelectedOperations.Selected",
    }
)
"""Open nothing by themselves: each site, list or file has to be granted to the app."""

READ_SITES = frozenset(
    {"Sites.Read.All", "Sites.ReadWrite.All", "Sites.Manage.All", "Sites.FullControl.All"}
)
READ_FILES = READ_SITES | {"Files.Read.All", "Files.ReadWrite.All"}
READ_OWN_FILES = frozenset({"Files.Read", "Files.ReadWrite"})
"""Delegated: open the person's own OneDrive alone."""

NEEDLESS = ("openid", "profile", "email", "offline_access", "User.Read")
"""Part of every sign-in of a person, and no excess."""

_EXCESS: dict[str, str] = {
    "Sites.FullControl.All": "lets the app change permissions and delete every site",
    "Sites.Manage.All": "lets the app create and delete lists in every site",
    "Sites.ReadWrite.All": "lets the app change every file in every site",
    "Files.ReadWrite.All": "lets the app change every file of everybody",
    "Files.ReadWrite": "lets the app change the person's files",
    "Files.ReadWrite.AppFolder": "lets the app write to a folder of its own",
}
_USEFUL = READ_FILES | READ_OWN_FILES | SELECTED | {"User.Read.All", "User.ReadBasic.All"}


def opens(permissions: frozenset[str]) -> Literal["all", "own", "selected", "nothing"]:
    """Tell what of other people's and sites' drives a token opens at most."""
    if permissions & READ_FILES:
        return "all"
    if permissions & READ_OWN_FILES:
        return "own"
    return "selected" if permissions & SELECTED else "nothing"


def excess(permissions: frozenset[str]) -> dict[str, str]:
    """Return the permissions that drivefeed has no use for, each with what it allows.

    ``Sites.Read.All`` and ``Files.Read.All`` are no excess: which of the two is needed depends on
    whether people browse sites.
    """
    found = {name: why for name, why in _EXCESS.items() if name in permissions}
    for name in sorted(permissions - _USEFUL - set(NEEDLESS) - set(_EXCESS)):
        found[name] = "is not used by drivefeed"
    return found
