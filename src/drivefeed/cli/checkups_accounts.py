"""What the doctor finds of accounts and of what is read through them: hosts, drives, folders."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from drivefeed.account_parts import open_accounts
from drivefeed.catalog.accounts import all_accounts, find_account
from drivefeed.catalog.sources import all_connections, all_drives
from drivefeed.cli.account_show import try_sign_in
from drivefeed.cli.words import duration_of, local_time, meaning_of, remedy_of
from drivefeed.domain.errors import NotFound
from drivefeed.domain.reasons import Reason
from drivefeed.services.checkups.finding import Colour, Finding, green, red, yellow
from drivefeed.services.checkups.network import Host, Hosts
from drivefeed.services.checkups.reach import host_of
from drivefeed.sources.graph.account import CLOUDS
from drivefeed.sources.graph.source import GraphSource

if TYPE_CHECKING:
    from drivefeed.account_parts import AccountParts
    from drivefeed.catalog.accounts import Account
    from drivefeed.catalog.sources import Drive
    from drivefeed.cli.checkups import Doctor
    from drivefeed.domain.model import Connection

SIGN_IN_SECONDS = 45.0
DRIVE_SECONDS = 45.0
_DAY_MS = 86_400_000
_EXPIRY_DAYS = (3, 14, 30)
_LATE_ROUNDS = 3
_LEAST_LATE_MS = 10 * 60_000
_DEMO_FILE = "graphsim.json"
_MAIL_PORTS = {"starttls": 587, "tls": 465, "none": 25}


class AccountChecks:
    """Adds the checks of hosts, accounts, drives and connections once the catalog is known."""

    def __init__(self, doctor: Doctor, hosts: Hosts) -> None:
        self._doctor = doctor
        self._settings = doctor.settings
        self._hosts = hosts

    async def add_all(self) -> None:
        """Add all of them."""
        parts, rows = None, []
        if self._doctor.catalog is not None:
            parts = await open_accounts(self._settings, self._doctor.catalog)
            rows = await all_accounts(self._doctor.catalog)
        needed = [*self._of_accounts(rows), *self._of_settings()]
        names = self._add_hosts(needed)
        self._doctor.examination.add("clock", self._clock, after=names)
        if parts is not None:
            await self._add_accounts(parts, rows)

    def _of_accounts(self, rows: list[Account]) -> list[Host]:
        known: list[tuple[str, str, str | None, str | None, str | None]] = [
            (one.name, one.cloud, one.authority, one.graph_url, one.ca_file) for one in rows
        ]
        if self._doctor.catalog is None:
            known = [
                (o.name, o.cloud, o.authority, o.graph_url, str(o.ca_file) if o.ca_file else None)
                for o in self._settings.accounts
            ]
        hosts = []
        for name, cloud, authority, graph_url, ca_file in known:
            usual = CLOUDS.get(cloud, CLOUDS["global"])
            hosts.append(Host(authority or usual.login, f"signing in as '{name}'", ca_file))
            hosts.append(Host(graph_url or usual.graph, f"reading through '{name}'", ca_file))
        return hosts

    def _of_settings(self) -> list[Host]:
        settings = self._settings
        hosts = []
        if settings.s3 is not None:
            region = settings.s3.region or "us-east-1"
            url = settings.s3.endpoint_url or f"https://s3.{region}.amazonaws.com"
            hosts.append(Host(url, "storing documents"))
        if settings.qdrant_url:
            hosts.append(Host(settings.qdrant_url, "the index"))
        embedders = (settings.embedding, *settings.embeddings.values())
        hosts += [Host(one.base_url, "embedding") for one in embedders if one.base_url]
        for channel in settings.notices:
            if channel.kind == "smtp":
                port = channel.port or _MAIL_PORTS[channel.tls]
                url = f"smtp://{channel.host}:{port}"
            else:
                url = channel.url.get_secret_value() if channel.url else ""
            hosts.append(Host(url, f"notices by '{channel.name}'"))
        return hosts

    def _add_hosts(self, needed: list[Host]) -> list[str]:
        """Add one check a host, however many need it; return the names of the checks."""
        by_host: dict[tuple[str, str | None], list[Host]] = {}
        for one in needed:
            by_host.setdefault((host_of(one.url), one.ca_file), []).append(one)
        for (host, ca_file), group in by_host.items():
            purposes = " and ".join(dict.fromkeys(one.purpose for one in group))
            whole = Host(group[0].url, purposes, ca_file)
            self._doctor.examination.add(f"network:{host}", partial(self._host, whole))
        return [f"network:{host}" for host, _ in by_host]

    async def _host(self, host: Host) -> list[Finding]:
        found = await self._hosts.look([host])
        demo = (self._settings.data_dir / _DEMO_FILE).is_file() and self._doctor.client is None
        if demo and "127.0.0.1" in host.url and any(one.colour is Colour.RED for one in found):
            words = f"{host_of(host.url)} belongs to a demo, and its graphsim is not running."
            remedy = "Start it with 'drivefeed demo'."
            return [Finding("network", Colour.GREY, words, remedy, host_of(host.url))]
        return found

    async def _clock(self) -> list[Finding]:
        return self._hosts.clock()

    async def _add_accounts(self, parts: AccountParts, rows: list[Account]) -> None:
        catalog = parts.catalog
        add = self._doctor.examination.add
        source = GraphSource(
            parts.accounts,
            credential=parts.credential,
            clock=self._doctor.around.clock,
            ids=self._doctor.around.ids,
        )
        self._doctor.stack.push_async_callback(source.aclose)
        drives = await all_drives(catalog)
        connections = await all_connections(catalog)
        if not rows:
            add("account", _no_account)
        for row in rows:
            usual = CLOUDS.get(row.cloud, CLOUDS["global"])
            hosts = {host_of(row.authority or usual.login), host_of(row.graph_url or usual.graph)}
            needs = [f"network:{host}" for host in sorted(hosts)]
            add(
                f"account:{row.name}",
                partial(self._account, parts, row),
                needs=needs if row.declared else [*needs, "secret key"],
                after=["clock"],
                seconds=SIGN_IN_SECONDS,
            )
            for drive in (one for one in drives if one.account_id == row.account_id):
                mine = [one for one in connections if one.drive_id == drive.drive_id]
                add(
                    f"drive:{drive.name}",
                    partial(self._drive, source, drive, mine),
                    needs=[f"account:{row.name}"],
                    seconds=DRIVE_SECONDS,
                    remedy="Look with 'drivefeed probe' which right is missing, and grant it.",
                )

    async def _account(self, parts: AccountParts, row: Account) -> list[Finding]:
        tried = await try_sign_in(parts, row)
        after = row
        with suppress(NotFound):
            after = await find_account(parts.catalog, row.name, org=row.org)
        if not tried.can:
            reason = after.reason
            if reason is Reason.CLOCK_WRONG and not self._doctor.examination.stands("clock"):
                remedy = "Cure the clock first."
                return [Finding("account", Colour.GREY, tried.words, remedy, row.name)]
            remedy = tried.remedy or "Look with 'drivefeed account show'."
            return [red("account", tried.words, remedy, subject=row.name)]
        unused = [] if row.drives else [_unused(row)]
        ends = [*self._expiry(after), *_renewal(after)]
        return [green("account", tried.words, subject=row.name), *ends, *unused]

    def _expiry(self, row: Account) -> list[Finding]:
        if row.expires_at is None:
            return []
        left = row.expires_at - self._doctor.around.clock.now()
        days = left // _DAY_MS
        when = local_time(row.expires_at).strftime("%Y-%m-%d")
        words = f"The secret, certificate or sign-in of account '{row.name}' ends on {when}"
        if days >= max(_EXPIRY_DAYS):
            return [green("expiry", f"{words}.", subject=row.name)]
        remedy = f"Give it a new one with 'drivefeed account reconnect {row.name}'."
        colour = red if days < min(_EXPIRY_DAYS) else yellow
        told = f"{words}, in {days} days." if left > 0 else f"{words}: it is over."
        return [colour("expiry", told, remedy, subject=row.name)]

    async def _drive(
        self, source: GraphSource, drive: Drive, connections: list[Connection]
    ) -> list[Finding]:
        remote = await source.drive(drive.ref)
        folders = [await self._connection(source, drive, one) for one in connections]
        return [self._standing(drive, remote.name), *folders]

    def _standing(self, drive: Drive, name: str) -> Finding:
        code = drive.attention or drive.hold
        if code is not None:
            colour: Any = red if drive.attention else yellow
            words = f"'{drive.name}': {meaning_of(code)} {drive.detail or ''}".rstrip()
            return colour("drive", words, remedy_of(code), subject=drive.name)  # type: ignore[no-any-return]  # one of two functions that return a Finding
        if drive.last_round_at is None:
            return green(
                "drive", f"'{name}' can be read; its first round is to come.", subject=name
            )
        late = self._doctor.around.clock.now() - drive.last_round_at
        ago = duration_of(late / 1000)
        words = f"'{name}' can be read; its last round ended {ago} ago."
        is_running = self._doctor.client is not None
        if is_running and late > max(_LATE_ROUNDS * drive.interval_ms, _LEAST_LATE_MS):
            remedy = "Look at the queue 'discover' on Bull Board and in the daemon's log."
            return yellow("drive", words, remedy, subject=name)
        return green("drive", words, subject=name)

    async def _connection(self, source: GraphSource, drive: Drive, one: Connection) -> Finding:
        try:
            await source.item(drive.ref, one.root_item_id)
        except NotFound:
            words = f"The folder of '{one.name}' is not there any more."
            return red("connection", words, remedy_of(Reason.FOLDER_GONE), subject=one.name)
        if one.attention is not None:
            words = f"'{one.name}': {meaning_of(one.attention)}"
            return red("connection", words, remedy_of(one.attention), subject=one.name)
        if one.paused:
            words = f"'{one.name}' is paused."
            remedy = f"'drivefeed resume {one.name}' resumes it."
            return yellow("connection", words, remedy, subject=one.name)
        return green("connection", f"The folder of '{one.name}' can be read.", subject=one.name)


async def _no_account() -> list[Finding]:
    words = "There is no account, so nothing can be read."
    return [yellow("account", words, "Add one with 'drivefeed account add'.")]


def _renewal(row: Account) -> list[Finding]:
    if not row.has_pending:
        return []
    words = f"Microsoft has not accepted the new certificate of account '{row.name}' yet."
    remedy = (
        f"Upload it to the app registration: 'drivefeed account certificate {row.name} --output "
        "FILE' writes it."
    )
    return [yellow("expiry", words, remedy, subject=row.name)]


def _unused(row: Account) -> Finding:
    words = f"No connection uses '{row.name}'."
    remedy = "Connect a folder with 'drivefeed connect', or remove the account."
    return yellow("account use", words, remedy, subject=row.name)
