"""Findings about the way out: hosts, proxies, trusted authorities, and the clock."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drivefeed.domain.errors import NeedsAttention
from drivefeed.services.checkups.finding import Finding, green, red, yellow
from drivefeed.services.checkups.reach import Obstacle, Reach, host_of, reach, try_port

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from drivefeed.outbound import Outbound
    from drivefeed.ports import Clock

SKEW_YELLOW_MS = 2 * 60_000
SKEW_RED_MS = 5 * 60_000
"""Microsoft's own tolerance for the times in assertions and tokens is about this."""


@dataclass(frozen=True, slots=True)
class Host:
    """Somebody outside whom this installation needs.

    Attributes:
        url: an http or https URL, or ``smtp://host:port``.
        purpose: what for, as words after *for*.
        ca_file: PEM file with authorities that its clients trust too.
    """

    url: str
    purpose: str
    ca_file: str | None = None


class Hosts:
    """Reaches hosts once each and remembers what came of it, for the findings of several parts."""

    def __init__(self, way: Outbound, clock: Clock) -> None:
        self._way = way
        self._clock = clock
        self.reached: dict[str, Reach] = {}

    async def look(self, hosts: Sequence[Host]) -> list[Finding]:
        """Reach several hosts at once: findings ``network``, ``proxy`` and ``trust``."""
        found = await asyncio.gather(*(self._one(host) for host in hosts))
        return [one for findings in found for one in findings]

    async def _one(self, host: Host) -> list[Finding]:
        if host.url.startswith("smtp:"):
            return [await _port(host)]
        try:
            got = await reach(host.url, self._way, self._clock, ca_file=host.ca_file)
        except NeedsAttention as error:
            # a file with authorities that is not there, or is none
            remedy = "Correct outbound.ca_file, or the account's CA file."
            return [red("trust", str(error), remedy, subject=host_of(host.url))]
        self.reached[got.host] = got
        return list(_findings(got, host))

    def clock(self) -> list[Finding]:
        """Compare our clock with those of the hosts that told their time."""
        told = {one.host: one.ahead_ms for one in self.reached.values() if one.ahead_ms is not None}
        if not told:
            return []
        # Several hosts are never wrong by the same amount; the one nearest to us is believed.
        host, ahead = min(told.items(), key=lambda pair: abs(pair[1]))
        return [clock_finding(host, ahead)]


def clock_finding(host: str, ahead_ms: int) -> Finding:
    """Judge the difference between our clock and that of a host."""
    seconds = round(abs(ahead_ms) / 1000)
    side = "behind" if ahead_ms > 0 else "ahead of"
    remedy = "Set the clock of this machine, and keep it set by NTP (chrony, systemd-timesyncd)."
    if abs(ahead_ms) <= SKEW_YELLOW_MS:
        return green("clock", f"Agrees with {host} to {max(seconds, 1)} s.")
    words = f"The clock of this machine is {seconds} s {side} {host}."
    if abs(ahead_ms) <= SKEW_RED_MS:
        return yellow("clock", words, remedy)
    return red("clock", f"{words} Microsoft refuses sign-ins by certificate so far off.", remedy)


def _findings(got: Reach, host: Host) -> Iterable[Finding]:
    where = f"{got.host}, needed for {host.purpose}"
    through = f" through the proxy {got.proxy}" if got.proxy else ""
    match got.obstacle:
        case Obstacle.NAME | Obstacle.PORT | Obstacle.SILENCE:
            yield red(
                "network",
                f"{where}: {got.words}.",
                f"Let this machine connect to {got.host}: check its name server and firewall; "
                "where only a proxy leads out, name it in outbound.https_proxy or HTTPS_PROXY.",
                subject=got.host,
            )
        case Obstacle.PROXY:
            yield red(
                "proxy",
                f"{where}, by way of the proxy {got.proxy}: {got.words}.",
                "Correct outbound.https_proxy and outbound.http_proxy (or HTTPS_PROXY and "
                f"HTTP_PROXY), or name {got.host} in outbound.no_proxy.",
                subject=got.host,
            )
        case Obstacle.TRUST:
            yield red(
                "trust",
                f"{where}: {got.words}.",
                "If a proxy of yours re-encrypts traffic, or the service has a certificate of your "
                "own authority, name that authority's PEM file in outbound.ca_file; else somebody "
                "else answers in its place.",
                subject=got.host,
            )
        case _:
            yield green("network", f"{where}, answers{through}.", subject=got.host)


async def _port(host: Host) -> Finding:
    name, _, port = host.url.removeprefix("smtp://").rpartition(":")
    stopped = await try_port(name, int(port))
    where = f"{name}:{port}"
    if stopped is None:
        return green("network", f"{where}, needed for {host.purpose}, answers.", subject=where)
    return red(
        "network",
        f"{where}, needed for {host.purpose}: {stopped[1]}.",
        "Correct host and port of the channel, or let this machine connect there.",
        subject=where,
    )
