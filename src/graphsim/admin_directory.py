"""The admin port's part about people, apps, sites and sign-in; see graphsim's README."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from graphsim.admin_answers import Answer, Refused, answered
from graphsim.tenancy import (
    App,
    Browser,
    Federation,
    KeyCredential,
    Person,
    Secret,
)

if TYPE_CHECKING:
    from starlette.requests import Request

    from graphsim.app import Application
    from graphsim.estate import Site


class NewSite(msgspec.Struct):
    """A site with its first library, and files to put there (text by name)."""

    name: str
    path: str | None = None
    files: dict[str, str] = {}


class NewPerson(msgspec.Struct):
    """Somebody who can sign in; ``tenant`` is a domain, ours by default."""

    name: str
    display_name: str = ""
    onedrive: bool = True
    tenant: str | None = None


class AppChange(msgspec.Struct):
    """What is to change of an app registration; what is left out stays."""

    name: str | None = None
    roles: list[str] | None = None
    scopes: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    secrets: list[Secret] | None = None
    certificates: list[str] | None = None
    """Public parts, as PEM."""
    federations: list[Federation] | None = None


class DirectoryChange(msgspec.Struct):
    """What is to change of the tenant's knobs; what is left out stays."""

    token_lifetime: float | None = None
    refresh_lifetime: float | None = None
    strict_rotation: bool | None = None
    device_lifetime: float | None = None
    device_dies_after: float | msgspec.UnsetType | None = msgspec.UNSET
    browser: Browser | None = None
    clock_skew: float | None = None
    """Seconds by which graphsim's clock is ahead of the real one."""


class DirectoryAdmin:
    """Answers about everything that is not a drive, a fault or the log."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._directory = app.entra.directory

    def routes(self) -> list[tuple[str, list[str], Answer]]:
        """Return path, methods and answer of each address."""
        return [
            ("/directory", ["GET"], self.show),
            ("/directory", ["PATCH"], self.change),
            ("/people", ["POST"], self.add_person),
            ("/people/{person}", ["PATCH"], self.change_person),
            ("/apps", ["POST"], self.add_app),
            ("/apps/{client}", ["PATCH"], self.change_app),
            ("/issuers", ["POST"], self.add_issuer),
            ("/sites", ["POST"], self.add_site),
            ("/sites/{site}", ["PATCH"], self.lock_site),
            ("/sites/{site}/grants", ["POST"], self.grant),
            ("/sites/{site}/grants", ["DELETE"], self.withdraw),
            ("/shares", ["POST"], self.share),
            ("/tokens", ["GET"], self.tokens),
            ("/tokens/revoke", ["POST"], self.revoke),
        ]

    async def show(self, _: Request) -> Response:
        """Return tenants, apps (without secrets), people and sites."""
        directory, estate = self._directory, self._app.estate
        apps = [
            {"client_id": one.client_id, "name": one.name, "roles": sorted(one.roles)}
            for one in directory.apps.values()
        ]
        return answered(
            {
                "tenants": directory.tenants,
                "apps": apps,
                "people": [_shown(one) for one in directory.people.values()],
                "sites": [self._site_facts(one) for one in estate.sites],
            }
        )

    async def change(self, request: Request) -> Response:
        """Take a :class:`DirectoryChange`."""
        change = msgspec.json.decode(await request.body(), type=DirectoryChange)
        for name, value in msgspec.structs.asdict(change).items():
            if name == "clock_skew":
                self._app.clock.skew = self._app.clock.skew if value is None else value
            elif value is not msgspec.UNSET and (value is not None or name == "device_dies_after"):
                setattr(self._directory, name, value)
        return Response(status_code=204)

    async def add_person(self, request: Request) -> Response:
        """Take a :class:`NewPerson`."""
        new = msgspec.json.decode(await request.body(), type=NewPerson)
        tenant = self._directory.add_tenant(new.tenant) if new.tenant else ""
        person = self._app.add_person(
            new.name, new.display_name, onedrive=new.onedrive, tenant_id=tenant
        )
        return answered(_shown(person), 201)

    async def change_person(self, request: Request) -> Response:
        """Take ``blocked`` (an AADSTS number or null) and ``refusal``."""
        person = self._person(request.path_params["person"])
        wanted = msgspec.json.decode(await request.body(), type=dict[str, Any])
        for name, value in wanted.items():
            if name not in {"blocked", "refusal"}:
                raise Refused(f"{name} can't be changed.")
            setattr(person, name, value)
        return answered(_shown(person))

    async def add_app(self, request: Request) -> Response:
        """Take an :class:`AppChange` for a new app."""
        change = msgspec.json.decode(await request.body(), type=AppChange)
        app = self._app.add_app(change.name or "another app")
        return answered(_applied(app, change), 201)

    async def change_app(self, request: Request) -> Response:
        """Take an :class:`AppChange`."""
        app = self._directory.apps.get(request.path_params["client"].lower())
        if app is None:
            raise Refused("There is no such app.")
        return answered(_applied(app, msgspec.json.decode(await request.body(), type=AppChange)))

    async def add_issuer(self, request: Request) -> Response:
        """Take ``url`` and ``public_key`` (PEM) of an issuer of federated tokens."""
        wanted = msgspec.json.decode(await request.body(), type=dict[str, str])
        self._directory.issuers[wanted["url"]] = wanted["public_key"].encode()
        return Response(status_code=204)

    async def add_site(self, request: Request) -> Response:
        """Take a :class:`NewSite`."""
        new = msgspec.json.decode(await request.body(), type=NewSite)
        site = self._app.add_site(new.name, new.path)
        drive = self._app.library(site)
        for name, text in new.files.items():
            drive.create_file(name, text.encode())
        return answered(self._site_facts(site), 201)

    async def lock_site(self, request: Request) -> Response:
        """Take ``locked``."""
        wanted = msgspec.json.decode(await request.body(), type=dict[str, bool])
        self._site(request).lock(locked=wanted["locked"])
        return Response(status_code=204)

    async def grant(self, request: Request) -> Response:
        """Take ``client_id`` and ``roles``."""
        wanted = msgspec.json.decode(await request.body(), type=dict[str, Any])
        identifier = self._site(request).grant(wanted["client_id"], *wanted.get("roles", ["read"]))
        return answered({"id": identifier}, 201)

    async def withdraw(self, request: Request) -> Response:
        """Take all grants of a site away."""
        self._site(request).permissions.clear()
        return Response(status_code=204)

    async def share(self, request: Request) -> Response:
        """Take ``drive`` and ``item``; answer with a sharing link."""
        wanted = msgspec.json.decode(await request.body(), type=dict[str, str])
        drive = self._app.estate.drive(wanted["drive"])
        item = drive.tree.live(wanted["item"])
        if item is None:
            raise Refused("There is no such item.")
        return answered({"url": self._app.estate.share(drive, item)}, 201)

    async def tokens(self, _: Request) -> Response:
        """Return how many refreshes there were, and which used tokens came again."""
        grants = self._app.entra.grants
        reused = [
            {"time": one.time, "user": one.user, "client": one.client} for one in grants.reused
        ]
        return answered({"refreshes": grants.refreshes, "reused": reused})

    async def revoke(self, request: Request) -> Response:
        """Refuse access tokens; with ``?refresh=1`` refresh tokens too, or one ``?user=``'s."""
        grants, asked = self._app.entra.grants, request.query_params
        grants.revoke_access_tokens()
        if name := asked.get("user"):
            grants.revoke_refresh_tokens(self._person(name))
        elif asked.get("refresh"):
            grants.revoke_refresh_tokens()
        return Response(status_code=204)

    def _person(self, name: str) -> Person:
        person = self._directory.find_person(name)
        if person is None:
            raise Refused("There is no such person.")
        return person

    def _site(self, request: Request) -> Site:
        wanted = request.path_params["site"]
        for site in self._app.estate.sites:
            if wanted in {site.id, site.name}:
                return site
        raise Refused("There is no such site.")

    @staticmethod
    def _site_facts(site: Site) -> dict[str, Any]:
        drives = [{"id": one.id, "name": one.name, "root": one.tree.root_id} for one in site.drives]
        return {"id": site.id, "name": site.name, "web_url": site.web_url, "drives": drives}


def _shown(person: Person) -> dict[str, Any]:
    drive = person.drives[0].id if person.drives else None
    tenant = person.tenant_id
    return {"id": person.id, "name": person.name, "tenant_id": tenant, "drive_id": drive}


def _applied(app: App, change: AppChange) -> dict[str, Any]:
    if change.roles is not None:
        app.roles = set(change.roles)
    if change.scopes is not msgspec.UNSET:
        app.scopes = None if change.scopes is None else set(change.scopes)
    if change.certificates is not None:
        app.certificates = [KeyCredential(pem.encode()) for pem in change.certificates]
    for name in ("name", "secrets", "federations"):
        value = getattr(change, name)
        if value is not None:
            setattr(app, name, value)
    return {"client_id": app.client_id, "name": app.name, "roles": sorted(app.roles)}
