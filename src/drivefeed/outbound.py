"""The way out: which proxy a URL is reached through, and which authorities are trusted.

Every client that leaves this machine asks here, so that one rule holds for all of them, whatever
its library makes of the environment. This machine itself is never reached through a proxy.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass, field, replace
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from drivefeed.certificate_files import authorities_in, blocks_in
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    import httpx

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Outbound:
    """Proxies and trust of all outbound clients. Proxy URLs may hold passwords.

    Attributes:
        http_proxy: where requests for ``http://`` go, or None.
        https_proxy: where requests for ``https://`` go (by CONNECT), or None.
        no_proxy: hosts that are reached directly: ``name`` and ``.name`` (with all below them),
            ``name:port``, addresses, networks such as ``10.0.0.0/8``, or ``*`` for all.
        ca_file: PEM file with authorities to trust besides the usual ones.
        folder: where bundles of authorities are written for libraries that want one file.
        company: whose traffic it is, for those who ask to be told; empty for ours.
        download_hosts: from where files may be fetched besides Microsoft's hosts.
    """

    http_proxy: str | None = field(default=None, repr=False)
    https_proxy: str | None = field(default=None, repr=False)
    no_proxy: tuple[str, ...] = ()
    ca_file: str | None = None
    folder: Path | None = None
    company: str = ""
    download_hosts: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Self:
        """Return what ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` say.

        Raises:
            NeedsAttention: a proxy is no URL that can be used.
        """
        values = os.environ if environ is None else environ

        def read(name: str) -> str:
            return values.get(name, "") or values.get(name.upper(), "")

        every = read("all_proxy")
        return cls().changed(
            http_proxy=read("http_proxy") or every,
            https_proxy=read("https_proxy") or every,
            no_proxy=read("no_proxy"),
        )

    def changed(
        self,
        *,
        http_proxy: str = "",
        https_proxy: str = "",
        no_proxy: str = "",
        ca_file: str | None = None,
        folder: Path | None = None,
        company: str = "",
        download_hosts: tuple[str, ...] = (),
    ) -> Self:
        """Return a copy with what is not empty put in place of what was there.

        Raises:
            NeedsAttention: a proxy is no URL that can be used, or the CA file holds no authorities.
        """
        if ca_file:
            authorities_in(ca_file)
        return replace(
            self,
            http_proxy=_proxy(http_proxy) if http_proxy else self.http_proxy,
            https_proxy=_proxy(https_proxy) if https_proxy else self.https_proxy,
            no_proxy=_names(no_proxy) if no_proxy else self.no_proxy,
            ca_file=ca_file or self.ca_file,
            folder=folder or self.folder,
            company=company or self.company,
            download_hosts=download_hosts or self.download_hosts,
        )

    def proxy_for(self, url: str) -> str | None:
        """Return the URL of the proxy through which ``url`` is reached; None for directly."""
        parts = urlsplit(url)
        proxy = {"http": self.http_proxy, "https": self.https_proxy}.get(parts.scheme)
        host = (parts.hostname or "").rstrip(".")
        if not proxy or not host or _is_here(host):
            return None
        port = parts.port or _PORTS[parts.scheme]
        return None if any(_covers(one, host, port) for one in self.no_proxy) else proxy

    def proxies_for(self, url: str) -> dict[str, str]:
        """Return the proxy of ``url`` as azure-core, requests and botocore want it."""
        proxy = self.proxy_for(url)
        return {urlsplit(url).scheme: proxy} if proxy else {}

    def trusted(self, *more: str | None) -> str | None:
        """Return one PEM file with all authorities to trust; None where the usual ones are all.

        For libraries that take a file in place of their own. It reads and may write files, so
        call it in a thread.

        Args:
            more: further files with authorities, of an account for example.

        Raises:
            NeedsAttention: a file cannot be read, or holds no certificates.
        """
        files = [one for one in dict.fromkeys((self.ca_file, *more)) if one]
        if not files:
            return None
        import certifi

        usual = os.environ.get("SSL_CERT_FILE") or certifi.where()
        return _bundle([*blocks_in(usual), *map(authorities_in, files)], self.folder)

    def tls(self, *more: str | None) -> ssl.SSLContext:
        """Return a context that trusts the usual authorities, ``ca_file`` and ``more``.

        Loading them takes some ten milliseconds, so call this in a thread.

        Raises:
            NeedsAttention: a file cannot be read, or holds no certificates.
        """
        import httpx

        context = httpx.create_ssl_context()
        for one in dict.fromkeys((self.ca_file, *more)):
            if one:
                context.load_verify_locations(cadata=authorities_in(one).decode("ascii"))
        return context

    def transport(
        self,
        *more: str | None,
        limits: httpx.Limits | None = None,
    ) -> httpx.AsyncBaseTransport:
        """Return what httpx sends through: directly or by a proxy, as each URL asks for.

        Call this in a thread, for the sake of :meth:`tls`.
        """
        from drivefeed.outbound_httpx import RoutedTransport

        return RoutedTransport(self, self.tls(*more), limits)

    def session(self, url: str, ca_file: str | None = None, *, timeout: float | None = None) -> Any:
        """Return a ``requests.Session`` for one service, for MSAL and OTLP; call it in a thread.

        Args:
            url: the service; its proxy is used for all requests.
            ca_file: further authorities to trust.
            timeout: seconds for connecting and for each silence, where a request names none.
        """
        from requests import Session

        session = Session()
        if timeout is not None:
            # requests itself knows a timeout for single requests only
            session.request = partial(session.request, timeout=timeout)  # type: ignore[method-assign]
        session.trust_env = False
        session.verify = self.trusted(ca_file) or True
        session.proxies = self.proxies_for(url)
        return session


def _proxy(url: str) -> str:
    url = url.strip() if "://" in url else f"http://{url.strip()}"
    try:
        parts = urlsplit(url)
        good = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise NeedsAttention(
            "A proxy has to be a URL such as http://proxy.example:3128, and one of the settings "
            "or HTTP_PROXY, HTTPS_PROXY, ALL_PROXY is not. SOCKS proxies are not supported.",
            reason=Reason.MISCONFIGURED,
        )
    return url


def _names(listed: str) -> tuple[str, ...]:
    return tuple(one.lower() for one in listed.replace(",", " ").split())


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _covers(entry: str, host: str, port: int) -> bool:
    """Whether an entry of ``no_proxy`` names a host."""
    if entry == "*":
        return True
    name, colon, number = entry.rpartition(":")
    if colon and number.isdigit() and not name.count(":"):
        return int(number) == port and _covers(name, host, port)
    try:
        address = ip_address(host)
    except ValueError:
        name = entry.removeprefix("*").lstrip(".")
        return host == name or host.endswith(f".{name}")
    try:
        return address in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return False


def _bundle(parts: list[bytes], folder: Path | None) -> str:
    """Write the certificates into one file, named by what is in it; return its path."""
    whole = b"\n".join(parts)
    folder = folder or Path(tempfile.gettempdir()) / f"drivefeed-trust-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"trusted-{hashlib.sha256(whole).hexdigest()[:16]}.pem"
    if not path.is_file() or path.read_bytes() != whole:
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(whole)
        Path(name).replace(path)
    return str(path)
