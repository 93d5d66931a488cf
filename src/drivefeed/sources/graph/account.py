"""What bootstrap knows about a sign-in: who the app is, and which cloud it talks to."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit


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


@dataclass(frozen=True, slots=True)
class GraphAccount:
    """An app registration that reads drives for an Org, without a signed-in person.

    Attributes:
        authority: URL of the sign-in service where it is not the cloud's own (https only).
        graph_url: URL of Graph where it is not the cloud's own; ``/v1.0`` is added to a bare host.
        ca_file: PEM file with certificates to trust in addition to the usual ones.
        cloud: a key of :data:`CLOUDS`.
    """

    account_id: str
    tenant_id: str
    client_id: str
    client_secret: str = field(repr=False)
    authority: str | None = None
    graph_url: str | None = None
    ca_file: str | None = None
    cloud: str = "global"

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
        """The scope of app-only tokens: whatever was consented to for this cloud's Graph."""
        return f"{CLOUDS[self.cloud].graph}/.default"

    @property
    def app(self) -> tuple[str, str]:
        """What Microsoft counts requests by: the tenant and the app."""
        return (self.tenant_id, self.client_id)
