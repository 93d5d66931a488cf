"""Who is known to Entra: tenants, app registrations with their credentials, and people."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphsim.items import guid

if TYPE_CHECKING:
    from graphsim.drive import Drive

CONSUMERS = "9188040d-6c67-4c5b-b112-36a304b66dad"
"""The tenant of personal accounts, as Microsoft's sign-in documentation gives it."""
DEFAULT_ROLES = ("Files.Read.All", "Sites.Read.All")
"""Application permissions that the first app has consent for."""


@dataclass
class Secret:
    """A client secret; ``expires`` is in seconds of graphsim's clock."""

    value: str
    expires: float | None = None


@dataclass
class KeyCredential:
    """The public part of a certificate, as uploaded to an app registration.

    Validity is judged by graphsim's clock; ``expires`` overrides the certificate's own end.
    """

    pem: bytes
    expires: float | None = None


@dataclass
class Federation:
    """A federated credential: whose tokens an app may sign in with."""

    issuer: str
    subject: str
    audience: str = "api://AzureADTokenExchange"


@dataclass
class App:
    """An app registration.

    Attributes:
        roles: Application permissions with admin consent; they become the ``roles`` claim.
        scopes: Delegated permissions with consent; null for whatever is asked for.
        tenants: Ids of tenants that know the app; null for all.
    """

    client_id: str
    name: str = "graphsim app"
    secrets: list[Secret] = field(default_factory=list)
    certificates: list[KeyCredential] = field(default_factory=list)
    federations: list[Federation] = field(default_factory=list)
    roles: set[str] = field(default_factory=lambda: set(DEFAULT_ROLES))
    scopes: set[str] | None = None
    tenants: set[str] | None = None


@dataclass
class Person:
    """Somebody who can sign in.

    Attributes:
        name: The user principal name.
        drives: Their OneDrive first; empty for a person without one.
        refusal: How Graph refuses the OneDrive of a person without one: ``mysite`` (404),
            ``default_drive`` (400), or ``both``, in turns, as was reported.
        blocked: The AADSTS number with which every sign-in of theirs is refused, if any.
    """

    id: str
    name: str
    display_name: str
    tenant_id: str
    drives: list[Drive] = field(default_factory=list)
    refusal: str = "both"
    blocked: int | None = None
    asked: int = 0
    """How often the OneDrive they do not have was asked for."""


@dataclass
class Browser:
    """Who sits at the browser, and what they answer when asked to sign in.

    Attributes:
        user: Signs in whoever was asked for; null for the one who was, or the first person.
        answer: ``accept``, ``decline``, or ``ask`` for a page with links.
    """

    user: str | None = None
    answer: str = "accept"


@dataclass
class Directory:
    """Everything Entra knows. The first app and the first person are the defaults."""

    tenant_id: str
    client_id: str
    client_secret: str
    user_id: str
    user_name: str
    token_lifetime: float = 3599
    """Seconds an access token is good for."""
    refresh_lifetime: float = 90 * 86400
    strict_rotation: bool = False
    """A refresh token dies when it is used (Entra leaves the old one alive)."""
    device_lifetime: float = 900
    """Seconds a device code is announced to be good for."""
    device_dies_after: float | None = None
    """Seconds after which device codes are dead in truth; 300 was seen where 900 was said."""
    domain: str = "graphsim.invalid"
    sharepoint_host: str = "graphsim.sharepoint.invalid"
    """Host of sites; exists nowhere, so that no client can follow an address by mistake."""
    is_personal: bool = False
    """The first person has a personal account, whose tokens are opaque."""
    browser: Browser = field(default_factory=Browser)
    apps: dict[str, App] = field(default_factory=dict)
    people: dict[str, Person] = field(default_factory=dict)
    tenants: dict[str, str] = field(default_factory=dict)
    """Tenant id by domain."""
    issuers: dict[str, bytes] = field(default_factory=dict)
    """Public keys (PEM) of issuers of federated tokens, by their ``iss``."""

    def __post_init__(self) -> None:
        """Register the first tenant, app and person."""
        self.tenants[self.domain] = self.tenant_id
        secret = Secret(self.client_secret)
        self.add_app(App(self.client_id, secrets=[secret]))
        tenant = CONSUMERS if self.is_personal else self.tenant_id
        self.add_person(Person(self.user_id, self.user_name, "Drive Owner", tenant))

    @property
    def my_host(self) -> str:
        """Host of the personal sites behind everybody's OneDrive."""
        label, _, rest = self.sharepoint_host.partition(".")
        return f"{label}-my.{rest}"

    @property
    def app(self) -> App:
        """The first app."""
        return self.apps[self.client_id.lower()]

    @property
    def person(self) -> Person:
        """The first person."""
        return self.people[self.user_id]

    def add_app(self, app: App) -> App:
        """Register an app."""
        self.apps[app.client_id.lower()] = app
        return app

    def add_person(self, person: Person) -> Person:
        """Register a person."""
        self.people[person.id] = person
        return person

    def add_tenant(self, domain: str) -> str:
        """Register another tenant and return its id; known ones keep theirs."""
        if domain not in self.tenants:
            self.tenants[domain] = str(uuid.UUID(guid(f"tenant:{domain}")))
        return self.tenants[domain]

    def find_person(self, name: str) -> Person | None:
        """Return a person by id or user principal name, in any case."""
        wanted = name.lower()
        for person in self.people.values():
            if wanted in {person.id.lower(), person.name.lower()}:
                return person
        return None

    def find_tenant(self, named: str) -> str | None:
        """Return the id of the tenant that a sign-in address names; null for an unknown one.

        ``common`` and its like are the first tenant's, or that of personal accounts.
        """
        low = named.lower()
        if low == "consumers" or (self.is_personal and low == "common"):
            return CONSUMERS
        if low in {"common", "organizations"}:
            return self.tenant_id
        if low in {*self.tenants.values(), CONSUMERS}:
            return low
        return self.tenants.get(low)
