"""Where drives are: personal sites, team sites with their libraries, and sharing links."""

from __future__ import annotations

import base64
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from graphsim.errors import GraphError, invalid_request, not_found
from graphsim.items import Item, Profile, guid, normal_drive_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphsim.drive import Drive
    from graphsim.tenancy import Directory, Person

_KINDS = {"docx": "w", "doc": "w", "xlsx": "x", "pptx": "p", "pdf": "b", "txt": "t", "one": "o"}
_LINK = "The sharing link no longer exists, or you do not have permission to access it."


@dataclass
class Site:
    """A SharePoint site, or the personal site behind a OneDrive.

    Attributes:
        path: Below the host, without a trailing slash; empty for the root site.
        members: Ids of the people who may read it; null for everybody in the tenant.
        permissions: Grants to apps, by permission id, in Graph's shape.
    """

    name: str
    host: str
    path: str
    tenant_id: str
    owner: Person | None = None
    drives: list[Drive] = field(default_factory=list)
    members: set[str] | None = None
    permissions: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The composite id of Graph: host, site collection and web."""
        place = f"{self.host}{self.path}".lower()
        return f"{self.host},{guid('site:' + place).lower()},{guid('web:' + place).lower()}"

    @property
    def web_url(self) -> str:
        """Where a browser finds it."""
        return f"https://{self.host}{quote(self.path)}"

    def put(self, drive: Drive, library: str) -> Drive:
        """Make a drive a library of this site, under this name in addresses."""
        drive.site, drive.library = self, library
        self.drives.append(drive)
        return drive

    def lock(self, *, locked: bool = True) -> None:
        """Lock or unlock the site, as an administrator or an archive does."""
        for drive in self.drives:
            drive.quirks.locked = locked

    def grant(self, client_id: str, *roles: str) -> str:
        """Give an app access to this site (``read``, ``write``, ``fullcontrol``); return the id."""
        identifier = base64.urlsafe_b64encode(secrets.token_bytes(18)).decode()
        application = {"id": client_id, "displayName": client_id}
        self.permissions[identifier] = {
            "id": identifier,
            "roles": list(roles or ("read",)),
            "grantedToIdentitiesV2": [{"application": application}],
            "grantedToIdentities": [{"application": application}],
        }
        return identifier

    def grants(self, client_id: str) -> bool:
        """Tell whether an app was given access to this site."""
        wanted = client_id.lower()
        return any(
            one["application"]["id"].lower() == wanted
            for permission in self.permissions.values()
            for one in permission["grantedToIdentitiesV2"]
        )


class Estate:
    """All drives and sites, and how addresses lead to them.

    Args:
        drives: The drives of the first person; more may be placed later.
        directory: The people and the host of sites.
    """

    def __init__(self, drives: list[Drive], directory: Directory) -> None:
        self.drives = drives
        self.directory = directory
        self.sites: list[Site] = []
        self._links: dict[str, tuple[Drive, Item]] = {}
        for drive in list(drives):
            self._place(drive)

    def _place(self, drive: Drive) -> None:
        owner = self.directory.person
        drive.owner = owner
        owner.drives.append(drive)
        if drive.profile is Profile.BUSINESS:
            site = self.personal_site(owner)
            site.put(drive, drive.name if site.drives else "Documents")
        elif drive.profile is Profile.DOCUMENT_LIBRARY:
            self.add_site(drive.name).put(drive, "Shared Documents")

    def add_site(self, name: str, path: str | None = None, tenant_id: str | None = None) -> Site:
        """Make a team site; its path is made of its name by default.

        Raises:
            ValueError: The path is taken.
        """
        slug = re.sub(r"[^\w-]+", "", name)
        where = f"/sites/{slug}" if path is None else path.rstrip("/")
        host = self.directory.sharepoint_host
        if self.site_at(host, where) is not None:
            raise ValueError(f"There is a site at {where} already.")
        site = Site(name, host, where, tenant_id or self.directory.tenant_id)
        self.sites.append(site)
        return site

    def personal_site(self, person: Person) -> Site:
        """Return the site behind a person's OneDrive, made at the first call."""
        for site in self.sites:
            if site.owner is person:
                return site
        slug = re.sub(r"\W", "_", person.name)
        site = Site(
            person.display_name, self.directory.my_host, f"/personal/{slug}", person.tenant_id,
            owner=person, members={person.id},
        )  # fmt: skip
        self.sites.append(site)
        return site

    # --- finding -------------------------------------------------------------------------------

    def drive(self, identifier: str) -> Drive:
        """Return a drive by id.

        Raises:
            GraphError: 404.
        """
        wanted = normal_drive_id(identifier)
        for drive in self.drives:
            if normal_drive_id(drive.id) == wanted:
                return drive
        raise not_found("The drive could not be found.")

    def site(self, key: str) -> Site:
        """Return a site by id, host, ``root``, ``host:/path``, or its site collection's id.

        Raises:
            GraphError: 404.
        """
        host, _, path = key.partition(":")
        own = {"", "root", self.directory.sharepoint_host}
        found = None
        if "," in key or re.fullmatch(r"[0-9a-f-]{36}", key, re.IGNORECASE):
            found = next((one for one in self.sites if key.lower() in _names(one)), None)
        elif host.lower() in own or path:
            found = self.site_at(host, path)
            if found is None and not path:
                found = next((one for one in self.team_sites()), None) or self._any()
        if found is None:
            raise not_found("Requested site could not be found")
        return found

    def site_at(self, host: str, path: str) -> Site | None:
        """Return the site at a path, compared without case."""
        if host.lower() in {"root", ""}:
            host = self.directory.sharepoint_host
        wanted = (host.lower(), path.rstrip("/").lower())
        for site in self.sites:
            if (site.host.lower(), site.path.lower()) == wanted:
                return site
        return None

    def team_sites(self) -> Iterator[Site]:
        """Yield the sites that are not somebody's OneDrive."""
        return (site for site in self.sites if site.owner is None)

    def _any(self) -> Site | None:
        return self.sites[0] if self.sites else None

    # --- sharing links -------------------------------------------------------------------------

    def share(self, drive: Drive, item: Item) -> str:
        """Make a sharing link to an item, in the form people copy from their browser."""
        token = base64.urlsafe_b64encode(secrets.token_bytes(33)).decode().rstrip("=")
        kind = "f" if item.is_container else _KINDS.get(item.name.rpartition(".")[2].lower(), "u")
        if drive.site is None:
            link = f"https://1drv.ms/{kind}/s!{token}"
        else:
            team, path = drive.site.owner is None, drive.site.path
            flag = "s" if team else "g"
            link = f"https://{drive.site.host}/:{kind}:/{flag}{_short(path)}/E{token}"
        self._links[link] = (drive, item)
        return f"{link}?e={token[:6]}"

    def revoke(self, link: str) -> None:
        """Make a sharing link lead nowhere."""
        self._links.pop(link.partition("?")[0], None)

    def shared(self, encoded: str) -> tuple[Drive, Item]:
        """Return what ``u!`` and a URL in base64 leads to: a sharing link or a webUrl.

        Raises:
            GraphError: 400 for text of another form, 403 for a link that leads nowhere.
        """
        if not encoded.startswith("u!"):
            raise invalid_request("The sharing token is malformed.")
        try:
            raw = encoded[2:]
            url = base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)).decode()
        except ValueError as error:
            raise invalid_request("The sharing token is malformed.") from error
        found = self._links.get(url.partition("?")[0]) or self._by_web_url(url)
        if found is None:
            raise GraphError(403, "accessDenied", _LINK)
        drive, item = found
        live = drive.tree.live(item.id)
        if live is None:
            raise GraphError(403, "accessDenied", _LINK)
        return drive, live

    def _by_web_url(self, url: str) -> tuple[Drive, Item] | None:
        parts = urlsplit(url)
        path, options = unquote(parts.path), parse_qs(parts.query)
        document = options.get("sourcedoc", [""])[0].strip("{}").upper()
        for drive in self.drives:
            if drive.site is None:
                identifier = options.get("id", options.get("resid", [""]))[0]
                item = drive.tree.live(identifier) if identifier else None
                if parts.hostname == "onedrive.live.com" and item:
                    return drive, item
                continue
            if drive.site.host != parts.hostname:
                continue
            if document and path.lower().endswith("/_layouts/15/doc.aspx"):
                known = (one for one in drive.tree.walk() if guid(one.id) == document)
                if item := next(known, None):
                    return drive, item
            start = f"{drive.site.path}/{drive.library}"
            if f"{path}/".lower().startswith(f"{start}/".lower()):
                names = path[len(start) :].split("/")
                if item := drive.tree.resolve(drive.tree.root, names):
                    return drive, item
        return None


def _short(path: str) -> str:
    """Return a site's path as sharing links spell it: ``/Research`` for ``/sites/Research``."""
    return quote(re.sub(r"^/sites(?=/)", "", path))


def _names(site: Site) -> set[str]:
    whole = site.id.lower()
    return {whole, *whole.split(",")[1:]}
