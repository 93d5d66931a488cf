"""What signing in needs, opened from settings and catalog; commands about accounts need no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.catalog.engine import Catalog
    from drivefeed.outbound import Outbound
    from drivefeed.secrets.ring import KeyRing
    from drivefeed.services.accounts import AccountBook
    from drivefeed.settings import Settings
    from drivefeed.settings_folders import AccountSettings
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.auth import Credential
    from drivefeed.sources.graph.budget_shared import Script
    from drivefeed.sources.graph.gates import Gates
    from drivefeed.sources.graph.tokens import TokenStore


@dataclass(slots=True)
class AccountParts:
    """Keys, tokens, and the accounts that could be opened.

    Attributes:
        accounts: by account id; changed in place by ``book``.
        credential: makes the sign-in of an account, watched so that its state is kept.
        outbound: proxies and trusted authorities of all accounts.
        gates: in front of Microsoft, of each app in a tenant; closed by the source that uses them.
    """

    catalog: Catalog
    ring: KeyRing
    tokens: TokenStore
    accounts: dict[str, GraphAccount]
    book: AccountBook
    credential: Callable[[GraphAccount], Credential]
    outbound: Outbound
    gates: Gates

    async def declare(self, account: AccountSettings) -> str:
        """Make an account of the settings known; return its id. It opens with the book."""
        from drivefeed.sources.graph.account import ClientSecret

        return await self.book.declare(
            org=account.org,
            name=account.name,
            values=_columns(account),
            sign_in=ClientSecret(account.client_secret.get_secret_value()),
        )


def _columns(account: AccountSettings) -> dict[str, Any]:
    """Return what the catalog keeps of an account of the settings; its secret stays there."""
    return {
        "sign_in": "secret",
        "tenant_id": account.tenant_id,
        "client_id": account.client_id,
        "cloud": account.cloud,
        "authority": account.authority,
        "graph_url": account.graph_url,
        "ca_file": str(account.ca_file) if account.ca_file else None,
    }


async def open_accounts(settings: Settings, catalog: Catalog) -> AccountParts:
    """Open the accounts of the settings and of the catalog; nobody is asked anything yet.

    No key is read before there is something to open.
    """
    from drivefeed.outward import outbound_of
    from drivefeed.services.accounts import AccountBook, AccountStates, credentials_of
    from drivefeed.services.token_store import CatalogTokenStore

    ring = open_ring(settings)
    outbound = outbound_of(settings)
    tokens = CatalogTokenStore(catalog, ring)
    accounts: dict[str, GraphAccount] = {}
    parts = AccountParts(
        catalog=catalog,
        ring=ring,
        tokens=tokens,
        accounts=accounts,
        book=AccountBook(catalog, ring, accounts, outbound),
        credential=credentials_of(
            tokens, AccountStates(catalog), catalog.clock, catalog.checkpoint
        ),
        outbound=outbound,
        gates=open_gates(settings, catalog),
    )
    for account in settings.accounts:
        await parts.declare(account)
    await parts.book.refresh()
    return parts


def open_gates(settings: Settings, catalog: Catalog) -> Gates:
    """Return the gates in front of Microsoft.

    Their budgets are shared with all processes that have the same Redis, from the first request
    on; the embedded one may start later, and whoever starts it tells the gates.
    """
    from drivefeed.sources.graph.gates import Gates

    def found() -> Script | None:
        from drivefeed.queue.embedded import embedded_url
        from drivefeed.queue.script import RedisScript
        from drivefeed.sources.graph.budget_shared import script_text

        given = settings.redis_url
        url = given.get_secret_value() if given else embedded_url(settings.data_dir / "queue")
        return RedisScript(url, script_text()) if url else None

    return Gates(
        catalog.clock,
        catalog.ids,
        budget=settings.budget_of,
        prefix=settings.queue_prefix,
        script=found,
    )


def open_ring(settings: Settings) -> KeyRing:
    """Return the key ring of the settings; no key is read before one is needed."""
    from drivefeed.secrets.places import place_for
    from drivefeed.secrets.ring import KeyRing

    key = settings.secret_key
    place = place_for(
        given=key.get_secret_value() if key else None,
        file=settings.secret_key_file,
        command=settings.secret_key_command,
        beside=None if settings.database_url else settings.data_dir,
    )
    return KeyRing(place)
