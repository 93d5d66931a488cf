"""What bootstrap knows about a sign-in: who the app is, and which cloud it talks to."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from drivefeed.outbound import Outbound


@dataclass(frozen=True, slots=True)
class Cloud:
    """The two hosts of a Microsoft cloud; tokens do not cross from one cloud to another."""

    login: str
    graph: str


# Source: Microsoft's "National cloud deployments" page.
CLOUDS: dict[str, Cloud] = {
    "global": Cloud("https://login.microsoftonline.com", "https://graph.microsoft.com"),
    "us_l4": Cloud("https://login.microsoftonline.us", "https://graph.microsoft.us"),
    "us_l5": Cloud("https://login.microsoftonline.us", "https://dod-graph.microsoft.us"),
    "china": Cloud("https://login.chinacloudapi.cn", "https://microsoftgraph.chinacloudapi.cn"),
}


_PERSONAL = frozenset({"consumers", "9188040d-6c67-4c5b-b112-36a304b66dad"})
"""The tenant of personal accounts. Source: "ID token claims reference" of Microsoft's."""


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """An app signs in by one of its client secrets."""

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """An app signs in by a certificate.

    Attributes:
        pem: private key and certificate, as PEM, one after the other.
    """

    pem: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class WorkloadIdentity:
    """An app signs in by a token of the platform it runs on (federated credential).

    Attributes:
        token_file: where the platform keeps a fresh token.
    """

    token_file: str


@dataclass(frozen=True, slots=True)
class SignedInUser:
    """A person signed in once; the refresh token is kept in the token store.

    Attributes:
        home_account_id: by which MSAL tells people apart.
        user_name: what the person is called at the sign-in page.
    """

    home_account_id: str
    user_name: str


SignIn = ClientSecret | ClientCertificate | WorkloadIdentity | SignedInUser


@dataclass(frozen=True, slots=True)
class GraphAccount:
    """A route to drives: an app registration, and who signs in with it.

    Attributes:
        name: what people call it.
        tenant_id: the tenant's id or domain; ``consumers`` for personal accounts.
        authority: URL of the sign-in service where it is not the cloud's own (https only).
        graph_url: URL of Graph where it is not the cloud's own; ``/v1.0`` is added to a bare host.
        ca_file: PEM file with certificates to trust in addition to the usual ones.
        cloud: a key of :data:`CLOUDS`.
        revision: rises with each change of the account, so that a client with old settings can
            be told from one with new ones.
        outbound: proxies and authorities of the machine; by default what the environment says.
        pending: a new certificate that takes the place of ``sign_in`` once Microsoft accepts it.
    """

    account_id: str
    name: str
    tenant_id: str
    client_id: str
    sign_in: SignIn
    authority: str | None = None
    graph_url: str | None = None
    ca_file: str | None = None
    cloud: str = "global"
    revision: int = 1
    outbound: Outbound = field(default_factory=Outbound.from_environment, repr=False, compare=False)
    pending: ClientCertificate | None = None

    @property
    def login_url(self) -> str:
        """The sign-in service, without a trailing slash."""
        return (self.authority or CLOUDS[self.cloud].login).rstrip("/")

    @property
    def base_url(self) -> str:
        """Graph with its version, without a trailing slash (kiota would double it)."""
        url = (self.graph_url or CLOUDS[self.cloud].graph).rstrip("/")
        return url if urlsplit(url).path else f"{url}/v1.0"

    @property
    def scope(self) -> str:
        """The scope of tokens: whatever was consented to for this cloud's Graph."""
        return f"{CLOUDS[self.cloud].graph}/.default"

    @property
    def is_delegated(self) -> bool:
        """Whether a person signed in, rather than the app itself."""
        return isinstance(self.sign_in, SignedInUser)

    @property
    def is_personal(self) -> bool:
        """Whether only personal Microsoft accounts can sign in."""
        return self.tenant_id.casefold() in _PERSONAL

    @property
    def is_of_organization(self) -> bool:
        """Whether no personal Microsoft account can have signed in."""
        return not self.is_delegated or self.tenant_id.casefold() not in {*_PERSONAL, "common"}

    @property
    def app(self) -> tuple[str, str]:
        """What Microsoft counts requests by: the tenant and the app."""
        return (self.tenant_id, self.client_id)
