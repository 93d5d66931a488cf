"""Tokens of a person are refreshed by the real MSAL, and kept in a real catalog before use."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import update

from drivefeed.catalog.access_tables import credentials
from drivefeed.catalog.account_removal import remove_account
from drivefeed.catalog.account_states import AccountState
from drivefeed.catalog.accounts import (
    add_account,
    change_account,
    declare_account,
    find_account,
)
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.credentials import CredentialKind
from drivefeed.catalog.engine import Catalog, open_catalog
from drivefeed.domain.errors import NeedsAttention, Part, PartDown, Throttled
from drivefeed.domain.reasons import Reason
from drivefeed.secrets.places import GivenKeys
from drivefeed.secrets.ring import KeyRing
from drivefeed.secrets.sealing import Key
from drivefeed.services.accounts import AccountBook, AccountStates, credentials_of
from drivefeed.services.idle_sign_ins import IDLE_MS, refresh_idle_sign_ins
from drivefeed.services.token_store import CatalogTokenStore
from drivefeed.sources.graph.account import ClientSecret, GraphAccount, SignedInUser
from drivefeed.sources.graph.delegated import DelegatedCredential
from drivefeed.system import SystemIds, no_checkpoint
from integration.delegated.kit import account_at, signed_in, token_requests
from integration.graph_source.kit import RealClock
from support.catalogs import new_catalog

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from graphsim.serving import GraphSim

KEY = base64.b64encode(Key.new().secret).decode()


class Desk:
    """A catalog with one account, whose person signed in."""

    def __init__(self, sim: GraphSim, catalog: Catalog) -> None:
        self.sim = sim
        self.catalog = catalog
        self.ring = KeyRing(GivenKeys(KEY))
        self.store = CatalogTokenStore(catalog, self.ring)
        self.user = SignedInUser("", "")
        self.account_id = ""
        self.passed: list[str] = []
        self.on_checkpoint: Callable[[str], object] = lambda _: None
        self._made: list[DelegatedCredential] = []

    async def open(self) -> None:
        found = await signed_in(self.sim)
        self.user = found.user
        self.account_id = await add_account(
            self.catalog,
            self.ring,
            org_id=await ensure_org(self.catalog, "org"),
            name="ours",
            values={
                "sign_in": "user",
                "tenant_id": self.sim.endpoints.tenant_id,
                "client_id": self.sim.endpoints.client_id,
                "authority": self.sim.endpoints.login_url,
                "ca_file": self.sim.endpoints.ca_file,
                "user_id": found.user.home_account_id,
                "user_name": found.user.user_name,
            },
            credential=(CredentialKind.TOKENS, found.cache.encode()),
        )
        self.sim.log.clear()

    def credential(self, store: Any = None) -> DelegatedCredential:
        """Another process's credential, as far as one process can have it."""
        account = account_at(self.sim, account_id=self.account_id, sign_in=self.user)
        made = DelegatedCredential(
            account, store or self.store, clock=RealClock(), checkpoint=self.passes
        )
        self._made.append(made)
        return made

    def passes(self, name: str) -> None:
        self.passed.append(name)
        self.on_checkpoint(name)

    async def kept_access_token(self) -> str:
        kept = await self.store.load(self.account_id)
        assert kept is not None
        (entry,) = json.loads(kept.cache)["AccessToken"].values()
        return str(entry["secret"])

    async def close(self) -> None:
        for one in self._made:
            await one.close()


@pytest.fixture
async def desk(sim: GraphSim, tmp_path: Path) -> AsyncIterator[Desk]:
    catalog = await open_catalog(
        new_catalog(tmp_path / "catalog.sqlite"),
        clock=RealClock(),
        ids=SystemIds(),
        checkpoint=no_checkpoint,
    )
    made = Desk(sim, catalog)
    await made.open()
    yield made
    await made.close()
    await catalog.aclose()


async def renewed(credential: DelegatedCredential) -> str:
    await credential.renew(credential.generation, None)
    return (await credential.get_token()).token


async def test_the_token_of_the_sign_in_is_used_first(desk: Desk) -> None:
    token = await desk.credential().get_token("whatever is asked for")
    assert token.token == await desk.kept_access_token()
    assert token.expires_on > RealClock().now() / 1000 + 3000
    assert token_requests(desk.sim) == []


async def test_a_new_token_is_kept_before_it_is_given_out(desk: Desk) -> None:
    credential = desk.credential()
    first = (await credential.get_token()).token
    second = await renewed(credential)
    assert second != first
    assert second == await desk.kept_access_token()
    assert desk.passed == [
        f"tokens.{what}" for what in ("ask.before", "ask.after", "save.before", "save.after")
    ]
    assert await desk.store.revision(desk.account_id) == 2
    assert token_requests(desk.sim) == [200]


async def test_a_token_that_cannot_be_kept_is_not_given_out(desk: Desk) -> None:
    class Full(CatalogTokenStore):
        async def save(self, *_args: Any, **_options: Any) -> int | None:
            raise PartDown("The disk is full.", part=Part.CATALOG)

    credential = desk.credential(Full(desk.catalog, desk.ring))
    await credential.get_token()
    await credential.renew(0, None)
    with pytest.raises(PartDown, match="disk is full"):
        await credential.get_token()


async def test_another_process_takes_what_was_kept(desk: Desk) -> None:
    one, other = desk.credential(), desk.credential()
    assert (await one.get_token()).token == (await other.get_token()).token
    token = await renewed(one)
    # The other one's token was refused as well; it finds the new one without asking.
    assert await renewed(other) == token
    assert token_requests(desk.sim) == [200]


async def test_many_at_once_refresh_once(desk: Desk) -> None:
    credentials = [desk.credential() for _ in range(4)]
    for one in credentials:
        await one.get_token()
        await one.renew(0, None)
    tokens = await asyncio.gather(*(one.get_token() for one in credentials for _ in range(3)))
    assert len({token.token for token in tokens}) == 1
    assert token_requests(desk.sim) == [200]


async def test_tokens_that_live_shortly_in_strict_mode(desk: Desk) -> None:
    directory = desk.sim.app.entra.directory
    directory.strict_rotation, directory.token_lifetime = True, 2
    credentials = [desk.credential() for _ in range(3)]

    async def work(one: DelegatedCredential) -> None:
        for _ in range(5):
            await renewed(one)

    for one in credentials:
        await one.get_token()
    await asyncio.gather(*(work(one) for one in credentials))
    assert set(token_requests(desk.sim)) == {200}
    assert len(token_requests(desk.sim)) >= 5


async def test_a_newer_cache_is_never_covered(desk: Desk) -> None:
    """The turn was lost while Entra took its time, and somebody else refreshed."""

    class Overtaken(CatalogTokenStore):
        async def save(self, account_id: str, cache: str, *, after: int | None) -> int | None:
            await renewed(quicker)
            return await super().save(account_id, cache, after=after)

    class NoTurn(CatalogTokenStore):
        def turn(self, account_id: str) -> Any:
            return super().turn(f"{account_id}-of-another")

    quicker = desk.credential(NoTurn(desk.catalog, desk.ring))
    await quicker.get_token()
    slow = desk.credential(Overtaken(desk.catalog, desk.ring))
    await slow.get_token()
    token = await renewed(slow)
    assert token == await desk.kept_access_token() == (await quicker.get_token()).token
    assert await desk.store.revision(desk.account_id) == 2


async def test_a_cancelled_refresh_is_finished_and_kept(desk: Desk) -> None:
    desk.sim.app.entra.directory.strict_rotation = True
    credential = desk.credential()
    await credential.get_token()
    await credential.renew(0, None)
    asking = asyncio.create_task(credential.get_token())
    desk.on_checkpoint = lambda name: name == "tokens.ask.after" and asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await desk.store.revision(desk.account_id) == 2
    assert (await credential.get_token()).token == await desk.kept_access_token()
    await renewed(credential)
    assert token_requests(desk.sim) == [200, 200]


async def test_a_throttled_sign_in_waits_as_told(desk: Desk) -> None:
    credential = desk.credential()
    await credential.get_token()
    desk.sim.faults.add("throttle", op="token", retry_after="7")
    with pytest.raises(Throttled) as raised:
        await renewed(credential)
    assert raised.value.seconds == 7
    # Not even MSAL remembers it.
    await renewed(credential)
    assert token_requests(desk.sim) == [429, 200]


async def test_a_refusal_asks_for_a_sign_in_and_is_remembered(desk: Desk) -> None:
    credential = desk.credential()
    await credential.get_token()
    desk.sim.app.entra.grants.revoke_refresh_tokens()
    for _ in range(3):
        with pytest.raises(NeedsAttention, match="drivefeed account reconnect ours") as raised:
            await renewed(credential)
        assert raised.value.reason is Reason.NEEDS_SIGN_IN
        assert "AADSTS50173" in str(raised.value)
    assert token_requests(desk.sim) == [400]
    # Somebody signs in again, in another process.
    again = await signed_in(desk.sim)
    revision = await desk.store.revision(desk.account_id)
    assert await desk.store.save(desk.account_id, again.cache, after=revision)
    assert (await credential.get_token()).token == await desk.kept_access_token()


async def test_nobody_signed_in_yet(desk: Desk) -> None:
    class Empty(CatalogTokenStore):
        async def load(self, _account_id: str) -> None:
            return None

    with pytest.raises(NeedsAttention, match="Nobody signed in with account 'ours' yet"):
        await desk.credential(Empty(desk.catalog, desk.ring)).get_token()


@pytest.mark.parametrize(
    ("number", "error", "words"),
    [
        (90033, Throttled, "slowed the sign-in"),
        (53003, NeedsAttention, "AADSTS53003"),
        (65001, NeedsAttention, "AADSTS65001"),
    ],
)
async def test_what_entra_says_is_told(
    desk: Desk, number: int, error: type[Exception], words: str
) -> None:
    credential = desk.credential()
    await credential.get_token()
    desk.sim.faults.add("status", op="token", aadsts=number)
    with pytest.raises(error, match=words):
        await renewed(credential)


async def test_the_account_tells_how_its_sign_in_is(desk: Desk) -> None:
    states = AccountStates(desk.catalog)
    make = credentials_of(desk.store, states, RealClock(), no_checkpoint)
    accounts: dict[str, Any] = {}
    book = AccountBook(desk.catalog, desk.ring, accounts)
    assert await book.refresh() == ["ours"]
    assert await book.refresh() == []
    credential = make(accounts[desk.account_id])
    await credential.get_token()
    desk.sim.app.entra.grants.revoke_refresh_tokens()
    await credential.renew(0, None)
    with pytest.raises(NeedsAttention):
        await credential.get_token()
    one = await find_account(desk.catalog, "ours")
    assert one.state is AccountState.NEEDS_SIGN_IN
    assert "AADSTS50173" in (one.detail or "")
    again = await signed_in(desk.sim)
    revision = await desk.store.revision(desk.account_id)
    await desk.store.save(desk.account_id, again.cache, after=revision)
    await credential.get_token()
    assert (await find_account(desk.catalog, "ours")).state is AccountState.OK
    await credential.close()


async def test_a_sign_in_that_nobody_uses_is_used_once_a_week(desk: Desk) -> None:
    states = AccountStates(desk.catalog)
    make = credentials_of(desk.store, states, RealClock(), no_checkpoint)
    accounts = {
        desk.account_id: account_at(desk.sim, account_id=desk.account_id, sign_in=desk.user)
    }
    assert await refresh_idle_sign_ins(desk.catalog, accounts, make) == []
    async with desk.catalog.write() as connection:
        await connection.execute(
            update(credentials).values(updated_at=RealClock().now() - IDLE_MS - 1)
        )
    # By then its access token has expired long since.
    kept = await desk.store.load(desk.account_id)
    assert kept is not None
    cache = json.loads(kept.cache) | {"AccessToken": {}}
    await desk.store.save(desk.account_id, json.dumps(cache), after=1)
    async with desk.catalog.write() as connection:
        await connection.execute(
            update(credentials).values(updated_at=RealClock().now() - IDLE_MS - 1)
        )
    assert await refresh_idle_sign_ins(desk.catalog, accounts, make) == ["ours"]
    assert token_requests(desk.sim) == [200]
    assert await refresh_idle_sign_ins(desk.catalog, accounts, make) == []


async def test_accounts_of_settings_and_catalog_are_opened_and_followed(desk: Desk) -> None:
    accounts: dict[str, GraphAccount] = {}
    book = AccountBook(desk.catalog, desk.ring, accounts)
    values = {"sign_in": "secret", "tenant_id": "t", "client_id": "c"}
    secret = ClientSecret("from the settings")
    declared = await book.declare(org="org", name="set", values=values, sign_in=secret)
    assert sorted(await book.refresh()) == ["ours", "set"]
    assert accounts[declared].sign_in == secret
    assert accounts[desk.account_id].sign_in == desk.user
    assert accounts[desk.account_id].authority == desk.sim.endpoints.login_url

    # Another process adds, changes and removes.
    org_id = await ensure_org(desk.catalog, "org")
    sealed = (CredentialKind.SECRET, b"sealed")
    added = await add_account(
        desk.catalog, desk.ring, org_id=org_id, name="new", values=values, credential=sealed
    )
    assert await book.refresh() == ["new"]
    assert accounts[added].sign_in == ClientSecret("sealed")
    await change_account(
        desk.catalog,
        desk.ring,
        added,
        values={"client_id": "d"},
        credential=(CredentialKind.SECRET, b"other"),
    )
    assert await book.refresh() == ["new"]
    assert (accounts[added].client_id, accounts[added].revision) == ("d", 2)
    assert accounts[added].sign_in == ClientSecret("other")
    await remove_account(desk.catalog, await find_account(desk.catalog, "new"))
    assert await book.refresh() == []
    assert added not in accounts


async def test_an_account_that_cannot_be_opened_is_left_out_until_it_can(desk: Desk) -> None:
    other = base64.b64encode(Key.new().secret).decode()
    values = {"sign_in": "secret", "tenant_id": "t", "client_id": "c"}
    sealed = (CredentialKind.SECRET, b"sealed")
    org_id = await ensure_org(desk.catalog, "org")
    strange = KeyRing(GivenKeys(other))
    await add_account(
        desk.catalog, strange, org_id=org_id, name="new", values=values, credential=sealed
    )
    await declare_account(desk.catalog, org_id=org_id, name="set", values=values)
    accounts: dict[str, GraphAccount] = {}
    book = AccountBook(desk.catalog, desk.ring, accounts)
    assert await book.refresh() == ["ours"]
    assert await book.refresh() == []
    assert any("Bring that key back" in words for words in book.left_out)
    assert any("came from the settings" in words for words in book.left_out)
    assert (await find_account(desk.catalog, "new")).state is AccountState.MISCONFIGURED
    again = AccountBook(desk.catalog, KeyRing(GivenKeys(f"{KEY},{other}")), accounts)
    assert sorted(await again.refresh()) == ["new", "ours"]
