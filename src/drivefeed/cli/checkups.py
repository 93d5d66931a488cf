"""What the doctor looks at: which checks there are, and what each of them needs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from drivefeed import bootstrap
from drivefeed.account_parts import open_ring
from drivefeed.catalog import examination as catalog_examination
from drivefeed.catalog.credentials import census
from drivefeed.catalog.gate import gates_told
from drivefeed.catalog.restoring import restored
from drivefeed.catalog.retention import last_pass
from drivefeed.cli.checkups_accounts import AccountChecks
from drivefeed.cli.checkups_parts import PartChecks
from drivefeed.cli.checkups_settings import settings_findings
from drivefeed.cli.context import daemon_client
from drivefeed.cli.words import count_of
from drivefeed.domain.errors import NeedsAttention
from drivefeed.keeping import places_of
from drivefeed.outward import outbound_of
from drivefeed.services.checkups.catalogs import catalog_findings
from drivefeed.services.checkups.examination import Examination
from drivefeed.services.checkups.finding import Finding, green, red, yellow
from drivefeed.services.checkups.folders import look_at_folder
from drivefeed.services.checkups.keeping import (
    gate_findings,
    recovery_findings,
    retention_findings,
)
from drivefeed.services.checkups.network import Hosts
from drivefeed.services.checkups.queues import delivery_findings
from drivefeed.services.gate import is_mounted_apart

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import httpx

    from drivefeed.catalog.engine import Catalog
    from drivefeed.settings import Settings

CATALOG_SECONDS = 20.0
_BRING_BACK = (
    "Bring back the key that sealed them (secret.key in the data folder, or DRIVEFEED_SECRET_KEY); "
    "if it is lost, enter the secrets of the accounts again with 'drivefeed account reconnect'."
)


async def examine(
    settings: Settings,
    config: Path | None,
    on_change: Callable[[Sequence[str]], None] | None = None,
) -> list[Finding]:
    """Look at the whole installation.

    Args:
        config: the file that the settings were read from.
        on_change: is told the names of the checks under way whenever one begins or ends.
    """
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(daemon_client(settings))
        return await Doctor(settings, config, client, stack, on_change).examine()


class Doctor:
    """One examination of one installation.

    Attributes:
        catalog: there once its check opened it.
    """

    def __init__(
        self,
        settings: Settings,
        config: Path | None,
        client: httpx.AsyncClient | None,
        stack: AsyncExitStack,
        on_change: Callable[[Sequence[str]], None] | None,
    ) -> None:
        self.settings = settings
        self.client = client
        self.stack = stack
        self.around = bootstrap.Surroundings.real()
        self.catalog: Catalog | None = None
        self.examination = Examination(on_change)
        self._config = config

    async def examine(self) -> list[Finding]:
        """Run all checks; findings come in the order in which checks are added here."""
        add = self.examination.add
        parts = PartChecks(self)
        add("settings", self._settings)
        add("disk", self._disk)
        add("catalog", self._catalog, needs=["disk"], seconds=CATALOG_SECONDS)
        add("secret key", self._secret_key, needs=["catalog"])
        add("daemon", parts.daemon)
        if getattr(self.settings, "web_port", None) is not None:
            add("web", parts.web, needs=["daemon"])
        parts.add_all()
        add("deliveries", self._deliveries, needs=["catalog"])
        add("keeping", self._keeping, needs=["catalog"])
        add("network", self._network, after=["catalog"])
        findings = await self.examination.run()
        return [*findings, *parts.board()]

    async def _settings(self) -> list[Finding]:
        return await asyncio.to_thread(settings_findings, self.settings, self._config)

    async def _disk(self) -> list[Finding]:
        remedies = {
            "data folder": "Let the user of drivefeed write there, or choose another one with "
            "--data.",
            "temporary folder": "Let the user of drivefeed write there, or name another one in "
            "TMPDIR.",
        }
        otherwise = "Let the user of drivefeed write there."
        return [
            await asyncio.to_thread(look_at_folder, place, remedies.get(place.name, otherwise))
            for place in places_of(self.settings)
            # Of what lies on the disk of the data folder, the data folder tells.
            if place.name in remedies or is_mounted_apart(place, self.settings.data_dir)
        ]

    async def _keeping(self) -> list[Finding]:
        if self.catalog is None:
            return []
        now = self.around.clock.now()
        return [
            *gate_findings(await gates_told(self.catalog)),
            *recovery_findings(await restored(self.catalog), now=now),
            *retention_findings(await last_pass(self.catalog), now=now),
        ]

    async def _catalog(self) -> list[Finding]:
        url = self.settings.catalog_url
        path = url.removeprefix("sqlite:///")
        where = f"'{path}'" if path != url else "The database"
        state = await asyncio.to_thread(catalog_examination.look, url, self.around.clock)
        where = state.server or where
        if not state.exists:
            remedy = "'drivefeed init' makes one, and so do 'drivefeed up' and 'drivefeed demo'."
            return [yellow("catalog", f"There is no catalog at {where} yet.", remedy)]
        findings = list(catalog_findings(state, where))
        if state.is_current and all(one.is_well for one in findings):
            self.catalog = await self.stack.enter_async_context(
                bootstrap.open_memory(self.settings, self.around)
            )
        return findings

    async def _secret_key(self) -> list[Finding]:
        if self.catalog is None:
            return []
        ring = open_ring(self.settings)
        sealed = await census(self.catalog)
        count = sum(sealed.values())
        if not count:
            return [green("secret key", "Nothing is sealed yet.")]
        try:
            newest = (await asyncio.to_thread(lambda: ring.newest)).key_id
        except NeedsAttention as error:
            return [_key_trouble(str(error))]
        shut = await catalog_examination.unopened(self.catalog, ring)
        by_words: dict[str, list[str]] = {}
        for name, words in shut.items():
            by_words.setdefault(words, []).append(f"'{name}'")
        if by_words:
            return [
                red("secret key", f"Of {', '.join(names)}: {words}", _BRING_BACK)
                for words, names in by_words.items()
            ]
        credentials = count_of(count, "credential")
        if set(sealed) - {newest}:
            words = f"Opens {credentials}, not all of them with the newest key."
            return [yellow("secret key", words, "Run 'drivefeed secrets rotate'.")]
        return [green("secret key", f"Opens {credentials}, all that are sealed.")]

    async def _deliveries(self) -> list[Finding]:
        if self.catalog is None:
            return []
        now = self.around.clock.now()
        waiting = await catalog_examination.oldest_waiting(self.catalog, now=now)
        return list(delivery_findings(waiting, now=now, is_running=self.client is not None))

    async def _network(self) -> list[Finding]:
        """Add a check for every host that is needed, and for what is read through it."""
        try:
            way = outbound_of(self.settings)
        except NeedsAttention as error:
            remedy = (
                "Correct the proxies and the CA file of the section outbound, or the variables "
                "HTTP_PROXY, HTTPS_PROXY and ALL_PROXY."
            )
            return [red("network", str(error), remedy)]
        hosts = Hosts(way, self.around.clock)
        await AccountChecks(self, hosts).add_all()
        return []


def _key_trouble(said: str) -> Finding:
    """Tell why the keys cannot be read, whatever they sealed; what to do is in the same words."""
    words, _, remedy = said.partition(". ")
    return red("secret key", f"{words.rstrip('.')}.", remedy or "Let drivefeed read the keys.")
