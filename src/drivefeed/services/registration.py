"""What a tenant's administrator has to do for drivefeed: as a script, and as a page to send.

The steps are those of Microsoft's pages on app registration, certificates, app role assignments
and site permissions. They were checked by structure and against graphsim as far as it goes, and
not run on a live tenant; each text says so itself.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from drivefeed import __version__
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.account import CLOUDS
from drivefeed.sources.graph.permissions import GRAPH_APP_ID, ROLE_IDS

if TYPE_CHECKING:
    from jinja2 import Environment

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----\s+([A-Za-z0-9+/=\s]+?)\s+-----END CERTIFICATE-----")
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,120}")
_TENANT = re.compile(r"[A-Za-z0-9.-]{1,200}")
_CLIENT = re.compile(r"[0-9A-Fa-f-]{36}")
_COLLECTIONS = ("sites", "teams", "personal")
_AZURE_CLOUDS = {
    "global": ("AzureCloud", "Global"),
    "us_l4": ("AzureUSGovernment", "USGov"),
    "us_l5": ("AzureUSGovernment", "USGovDoD"),
    "china": ("AzureChinaCloud", "China"),
}
"""What the Azure CLI and Microsoft Graph PowerShell call each cloud."""


class Rights(StrEnum):
    """How much the app shall be able to read."""

    SELECTED = "selected"
    READ_ALL = "read-all"


class Shell(StrEnum):
    """In what the script is written."""

    AZURE_CLI = "azure-cli"
    POWERSHELL = "powershell"


@dataclass(frozen=True, slots=True)
class Registration:
    """What an administrator is asked for.

    Attributes:
        tenant: the tenant's id or domain.
        rights: selected sites, or everything.
        site_url: address of the site to grant, for selected sites.
        client_id: of an app that exists already; without it one is made.
        certificate: public part, as PEM; without it no credential is added.
        browse: whether people choose sites by name, which needs a permission of its own.
    """

    app_name: str
    tenant: str
    rights: Rights
    site_url: str | None = None
    client_id: str | None = None
    certificate: str | None = None
    cloud: str = "global"
    browse: bool = False

    def __post_init__(self) -> None:
        """Refuse what no script can be made of.

        Raises:
            NeedsAttention: with all problems at once.
        """
        problems = []
        if not _NAME.fullmatch(self.app_name):
            problems.append("The app's name is empty, too long, or holds control characters.")
        if not _TENANT.fullmatch(self.tenant):
            problems.append(f"'{self.tenant}' is neither a tenant's id nor its domain.")
        if self.client_id is not None and not _CLIENT.fullmatch(self.client_id):
            problems.append(f"'{self.client_id}' is not a client id.")
        if self.cloud not in CLOUDS:
            problems.append(f"There is no cloud '{self.cloud}'; choose from {', '.join(CLOUDS)}.")
        if self.certificate is not None and not _PEM.search(self.certificate):
            problems.append("The certificate is not PEM (-----BEGIN CERTIFICATE-----).")
        if self.rights is Rights.SELECTED and not self.site_url:
            problems.append("Selected sites need the address of a site (--site).")
        if self.site_url and site_of(self.site_url) is None:
            problems.append(f"'{self.site_url}' is not the address of a SharePoint site.")
        if problems:
            raise NeedsAttention(" ".join(problems), reason=Reason.MISCONFIGURED)

    @property
    def permissions(self) -> dict[str, str]:
        """Names and ids of the application permissions that are asked for."""
        names = ["Sites.Selected" if self.rights is Rights.SELECTED else "Files.Read.All"]
        if self.browse:
            names.append("Sites.Read.All")
        return {name: ROLE_IDS[name] for name in names}


def site_of(url: str) -> tuple[str, str] | None:
    """Return host and path of the site that an address lies in; None where it is no address.

    The path is empty for the host's root site, and percent-encoded as Graph expects it.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    host = parts.hostname or ""
    if parts.scheme != "https" or not re.fullmatch(r"[a-z0-9.-]+", host):
        return None
    names = [unquote(name) for name in parts.path.split("/") if name]
    if any(re.search(r"[\x00-\x1f\x7f]", name) for name in names):
        return None
    if names and names[0].lower() in _COLLECTIONS:
        if len(names) == 1:
            return None
        return host, "/" + "/".join(quote(name, safe="") for name in names[:2])
    return host, ""


def public_part(pem: str) -> str | None:
    """Return the certificate of a PEM that may hold its private key as well; None without one."""
    found = _PEM.search(pem)
    return found[0] if found else None


def script(wanted: Registration, shell: Shell) -> str:
    """Return the script that does all that is asked for, to be read before it is run."""
    names = {Shell.AZURE_CLI: "registration.sh.j2", Shell.POWERSHELL: "registration.ps1.j2"}
    return _environment().get_template(names[shell]).render(_words(wanted))


def page(wanted: Registration) -> str:
    """Return a page (HTML without anything outside of itself) to send to an administrator."""
    scripts = {str(shell): script(wanted, shell) for shell in Shell}
    template = _environment(html=True).get_template("registration.html.j2")
    return template.render(_words(wanted), scripts=scripts)


def _words(wanted: Registration) -> dict[str, Any]:
    host, path = site_of(wanted.site_url) or ("", "") if wanted.site_url else ("", "")
    pem = _PEM.search(wanted.certificate) if wanted.certificate else None
    der = re.sub(r"\s+", "", pem[1]) if pem else ""
    azure, powershell = _AZURE_CLOUDS[wanted.cloud]
    return {
        "version": __version__,
        "wanted": wanted,
        "is_selected": wanted.rights is Rights.SELECTED,
        "permissions": wanted.permissions,
        "graph_app": GRAPH_APP_ID,
        "graph": CLOUDS[wanted.cloud].graph,
        "site_address": f"{host}:{path}" if path else host,
        "by_name": "displayName eq '{}'".format(wanted.app_name.replace("'", "''")),
        "certificate": pem[0] if pem else "",
        "certificate_der": der,
        # By its name a second run of a script knows that the certificate is there.
        "certificate_name": f"drivefeed {hashlib.sha256(der.encode()).hexdigest()[:16]}",
        "azure_cloud": azure,
        "graph_environment": powershell,
    }


def _environment(*, html: bool = False) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("drivefeed.services", "templates"),
        autoescape=html,  # noqa: S701 (a script for a shell is no HTML; it has filters of its own)
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["sh"] = shlex.quote
    made.filters["ps"] = _single_quoted
    return made


def _single_quoted(text: str) -> str:
    """Quote for PowerShell, which takes typographic quotes for quotes as well."""
    return "'" + re.sub("(['\u2018\u2019\u201a\u201b])", r"\1\1", text) + "'"
