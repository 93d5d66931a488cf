"""What leads to drives: people, sites with their libraries and grants, and paged lists of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from graphsim.errors import GraphError, invalid_request, not_found
from graphsim.rendering import render_drive, selected
from graphsim.rights import FULL_CONTROL, denied
from graphsim.tenancy import CONSUMERS

if TYPE_CHECKING:
    from graphsim.addressing import Address
    from graphsim.estate import Estate, Site
    from graphsim.exchange import Exchange
    from graphsim.pages import Pages
    from graphsim.rights import Caller
    from graphsim.tenancy import Person


class _Identity(msgspec.Struct):
    id: str


class _Grantee(msgspec.Struct):
    application: _Identity


class _Wanted(msgspec.Struct, rename="camel"):
    """The body that grants an app access to a site."""

    roles: list[str]
    granted_to_identities: list[_Grantee] = []
    granted_to_identities_v2: list[_Grantee] = msgspec.field(
        default_factory=list, name="grantedToIdentitiesV2"
    )


class Places:
    """Answers what lies outside of drives.

    Args:
        estate: The people, sites and drives.
        pages: Cuts lists into pages.
    """

    def __init__(self, estate: Estate, pages: Pages) -> None:
        self._estate = estate
        self._pages = pages

    async def answer(
        self, exchange: Exchange, address: Address, caller: Caller, options: dict[str, str]
    ) -> None:
        """Answer one request.

        Raises:
            GraphError: The refusal to send.
        """
        parts = address.other.strip("/").split("/")
        exchange.understood("drives" if parts[-1].lower() == "drives" else "directory")
        exchange.refuse_if_told()
        match [parts[0].lower(), *parts[1:]]:
            case ["me", *rest]:
                await self._person(exchange, caller.need_person(), rest, caller, options)
            case ["users"]:
                if not caller.permissions & {"User.Read.All", "Directory.Read.All"}:
                    message = "Insufficient privileges to complete the operation."
                    raise GraphError(403, "Authorization_RequestDenied", message)
                people = [_person(one) for one in self._people(caller)]
                await self._pages.listed(exchange, people, options)
            case ["users", name, *rest]:
                await self._person(exchange, self.person(name, caller), rest, caller, options)
            case ["sites"]:
                sites = [_site(one) for one in self._found(caller, options.get("search", "*"))]
                await self._pages.listed(exchange, sites, options)
            case ["sites", key, *rest]:
                site = self._estate.site(address.site or key)
                await self._site(exchange, site, rest, caller, options)
            case _:
                raise not_found(f"graphsim has nothing at {address.other}.")

    def person(self, name: str, caller: Caller) -> Person:
        """Return a person of the caller's tenant.

        Raises:
            GraphError: 404.
        """
        person = self._estate.directory.find_person(name)
        if person is None or person.tenant_id not in {caller.tenant_id, CONSUMERS}:
            message = f"Resource '{name}' does not exist or is not visible."
            raise GraphError(404, "Request_ResourceNotFound", message)
        return person

    def _people(self, caller: Caller) -> list[Person]:
        everybody = self._estate.directory.people.values()
        own = [person for person in everybody if person.tenant_id == caller.tenant_id]
        return sorted(own, key=lambda person: person.name)

    def _found(self, caller: Caller, text: str) -> list[Site]:
        wanted = text.strip("*").lower()
        return [
            site
            for site in self._estate.team_sites()
            if caller.finds(site) and (wanted in site.name.lower() or wanted in site.path.lower())
        ]

    async def _person(
        self,
        exchange: Exchange,
        person: Person,
        rest: list[str],
        caller: Caller,
        options: dict[str, str],
    ) -> None:
        match [part.lower() for part in rest]:
            case []:
                await exchange.json(200, selected(_person(person), options.get("select")))
            case ["drives"]:
                for drive in person.drives:
                    caller.check_drive(drive)
                drives = [render_drive(one) for one in person.drives]
                await self._pages.listed(exchange, drives, options)
            case _:
                raise not_found(f"graphsim has no {'/'.join(rest)} of people.")

    async def _site(
        self,
        exchange: Exchange,
        site: Site,
        rest: list[str],
        caller: Caller,
        options: dict[str, str],
    ) -> None:
        match [part.lower() for part in rest]:
            case []:
                caller.check_site(site)
                await exchange.json(200, selected(_site(site), options.get("select")))
            case ["drives"]:
                if not site.drives:
                    caller.check_site(site)
                for drive in site.drives:
                    caller.check_drive(drive)
                drives = [render_drive(one) for one in site.drives]
                await self._pages.listed(exchange, drives, options)
            case ["sites"]:
                caller.check_site(site)
                await self._pages.listed(exchange, [], options)
            case ["permissions", *_]:
                caller.need(FULL_CONTROL)
                if site.tenant_id != caller.tenant_id:
                    raise denied()
                await self._permissions(exchange, site, rest[1:], options)
            case _:
                raise not_found(f"graphsim has no {'/'.join(rest)} of sites.")

    async def _permissions(
        self, exchange: Exchange, site: Site, rest: list[str], options: dict[str, str]
    ) -> None:
        if not rest and exchange.method == "POST":
            try:
                wanted = msgspec.json.decode(await exchange.body(), type=_Wanted)
            except msgspec.MsgspecError as error:
                raise invalid_request(f"The body grants nothing ({error}).") from error
            grantees = wanted.granted_to_identities_v2 or wanted.granted_to_identities
            if not grantees or not {*wanted.roles} <= {"read", "write", "fullcontrol", "owner"}:
                raise invalid_request("Name roles and an application to grant them to.")
            identifier = site.grant(grantees[0].application.id, *wanted.roles)
            await exchange.json(201, site.permissions[identifier])
        elif not rest:
            shown = list(site.permissions.values())
            await self._pages.listed(exchange, shown, options)
        elif rest[0] not in site.permissions:
            raise not_found("The permission could not be found.")
        elif exchange.method == "DELETE":
            del site.permissions[rest[0]]
            await exchange.respond(204, exchange.standard_headers(), b"")
        else:
            await exchange.json(200, site.permissions[rest[0]])


def _person(person: Person) -> dict[str, Any]:
    return {
        "id": person.id,
        "displayName": person.display_name,
        "userPrincipalName": person.name,
        "mail": person.name,
    }


def _site(site: Site) -> dict[str, Any]:
    return {
        "id": site.id,
        "name": site.path.rpartition("/")[2],
        "displayName": site.name,
        "webUrl": site.web_url,
        "siteCollection": {"hostname": site.host},
    }
