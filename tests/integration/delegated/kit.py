"""A tenant, a person at a browser, and a catalog that keeps what they bring."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

import httpx

from drivefeed.sources.graph.account import GraphAccount, SignedInUser
from drivefeed.sources.graph.sign_in import SignedIn, sign_in_by_device
from graphsim.tenancy import Person as Somebody

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drivefeed.sources.graph.sign_in import DeviceCode
    from graphsim.serving import GraphSim

NOBODY = SignedInUser("", "")


class PatientClock:
    """The real time; sleeping takes a tenth of a second, or as long as it must."""

    def now(self) -> int:
        return int(time.time() * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.1))


def account_at(sim: GraphSim, **more: Any) -> GraphAccount:
    facts: dict[str, Any] = {
        "account_id": "account-1",
        "name": "ours",
        "tenant_id": sim.endpoints.tenant_id,
        "client_id": sim.endpoints.client_id,
        "sign_in": NOBODY,
        "authority": sim.endpoints.login_url,
        "graph_url": sim.endpoints.graph_url,
        "ca_file": sim.endpoints.ca_file,
    }
    return GraphAccount(**{**facts, **more})


class Person:
    """Somebody with a browser that trusts the tenant."""

    def __init__(self, sim: GraphSim) -> None:
        import ssl

        self.browser = httpx.AsyncClient(
            verify=ssl.create_default_context(cafile=sim.endpoints.ca_file)
        )
        self.pages: list[httpx.Response] = []

    async def redirected(self, auth_uri: str, **changes: str) -> str:
        """Sign in at the page, and return where the browser is sent then."""
        parts = urlsplit(auth_uri)
        query = urlencode(dict(parse_qsl(parts.query)) | changes)
        answer = await self.browser.get(urlunsplit(parts._replace(query=query)))
        return str(answer.headers["location"])

    async def visit(self, url: str) -> httpx.Response:
        """Go where the browser was sent, on this machine."""
        page = await self.browser.get(url.replace("//localhost:", "//127.0.0.1:"))
        self.pages.append(page)
        return page

    async def signs_in(self, auth_uri: str) -> None:
        """Do what a person does, in one go."""
        await self.visit(await self.redirected(auth_uri))

    async def enters(self, code: DeviceCode, answer: str = "accept") -> None:
        """Enter a device code."""
        await self.browser.get(code.url, params={"user_code": code.code, "answer": answer})


def state_of(auth_uri: str) -> str:
    return parse_qs(urlsplit(auth_uri).query)["state"][0]


async def signed_in(sim: GraphSim, account: GraphAccount | None = None) -> SignedIn:
    """Sign the person in by a device code."""
    person = Person(sim)
    async with person.browser:
        return await sign_in_by_device(
            account or account_at(sim), clock=PatientClock(), show=person.enters
        )


def token_requests(sim: GraphSim) -> list[int]:
    """Return the statuses of all requests for tokens."""
    return [entry.status for entry in sim.log.entries(op="token")]


@contextmanager
def other_person_at(sim: GraphSim) -> Iterator[Somebody]:
    """Have somebody else of the tenant sit at every browser."""
    known = sim.app.entra.directory
    other = Somebody("0" * 36, "other@graphsim.invalid", "Other Owner", known.tenant_id)
    known.add_person(other)
    known.browser.user = other.name
    yield other
    known.browser.user = None
    del known.people[other.id]
