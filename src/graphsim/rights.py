"""Who asks Graph, and what they may read: application roles, delegated scopes, per-site grants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphsim.errors import GraphError, not_found

if TYPE_CHECKING:
    from graphsim.drive import Drive
    from graphsim.estate import Site
    from graphsim.tenancy import App, Person

_SITES = frozenset(
    {"Sites.Read.All", "Sites.ReadWrite.All", "Sites.Manage.All", "Sites.FullControl.All"}
)
_FILES = _SITES | {"Files.Read.All", "Files.ReadWrite.All"}
_OWN_FILES = _FILES | {"Files.Read", "Files.ReadWrite"}
FULL_CONTROL = "Sites.FullControl.All"
SELECTED = "Sites.Selected"


@dataclass(frozen=True)
class Caller:
    """An app, or an app on behalf of a person.

    Attributes:
        permissions: What the token's ``roles`` or ``scp`` claim holds.
    """

    app: App
    person: Person | None
    tenant_id: str
    permissions: frozenset[str]

    def need_person(self) -> Person:
        """Return the person.

        Raises:
            GraphError: 400, for a token of the app itself.
        """
        if self.person is None:
            raise GraphError(400, "BadRequest", "/me needs a token given on behalf of a person.")
        return self.person

    def check_drive(self, drive: Drive) -> None:
        """Refuse a drive that this caller may not read.

        Raises:
            GraphError: 403 without the right or the site's grant, 404 for another tenant's drive.
        """
        if drive.tenant_id not in {"", self.tenant_id}:
            raise not_found("The drive could not be found.")
        if drive.owner is not None and drive.owner is self.person:
            if self.permissions & _OWN_FILES:
                return
        elif self._may_enter(drive) and (
            self.permissions & _FILES or self._is_selected(drive.site)
        ):
            return
        raise denied()

    def check_link(self, drive: Drive) -> None:
        """Refuse a sharing link to a drive that its holder may not follow.

        A link opens the item to people of the tenant; an app still needs its right to the drive.

        Raises:
            GraphError: 403.
        """
        if self.person is None or drive.tenant_id not in {"", self.tenant_id}:
            self.check_drive(drive)
        elif not self.permissions & _OWN_FILES:
            raise denied()

    def check_site(self, site: Site) -> None:
        """Refuse a site that this caller may not read.

        Raises:
            GraphError: 403 without the right, 404 for another tenant's site.
        """
        if site.tenant_id != self.tenant_id:
            raise not_found("Requested site could not be found")
        inside = self.person is None or site.members is None or self.person.id in site.members
        if not (inside and (self.permissions & _SITES or self._is_selected(site))):
            raise denied()

    def finds(self, site: Site) -> bool:
        """Tell whether a search over all sites shows this one.

        Raises:
            GraphError: 403 for a caller who has no right to any site. With selected sites, those
                that were granted are found, as was reported.
        """
        if not self.permissions & (_SITES | {SELECTED}):
            raise denied()
        try:
            self.check_site(site)
        except GraphError:
            return False
        return True

    def need(self, permission: str) -> None:
        """Refuse what needs one permission.

        Raises:
            GraphError: 403.
        """
        if permission not in self.permissions:
            raise denied()

    def _may_enter(self, drive: Drive) -> bool:
        if self.person is None or self.person.id in drive.readers:
            return True
        if drive.site is None or drive.site.owner is not None:
            return False
        return drive.site.members is None or self.person.id in drive.site.members

    def _is_selected(self, site: Site | None) -> bool:
        return SELECTED in self.permissions and site is not None and site.grants(self.app.client_id)


def denied() -> GraphError:
    """Return the 403 of somebody who lacks a right."""
    return GraphError(403, "accessDenied", "Access denied")
