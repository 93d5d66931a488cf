"""What every token store promises; the catalog's is the one there is."""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.accounts import add_account
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.engine import open_catalog
from drivefeed.domain.errors import NotFound, Transient
from drivefeed.secrets.places import GivenKeys
from drivefeed.secrets.ring import KeyRing
from drivefeed.secrets.sealing import Key
from drivefeed.services.token_store import CatalogTokenStore
from drivefeed.system import SystemClock, SystemIds, no_checkpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.sources.graph.tokens import TokenStore

KEY = base64.b64encode(Key.new().secret).decode()


class Rig:
    """Stores of two processes, as far as one process can have them, and an account."""

    def __init__(self, stores: list[TokenStore], account_id: str) -> None:
        self.first, self.second = stores
        self.account_id = account_id


@pytest.fixture
async def rig(catalog_url: str) -> AsyncIterator[Rig]:
    catalogs = [
        await open_catalog(
            catalog_url,
            clock=SystemClock(),
            ids=SystemIds(),
            checkpoint=no_checkpoint,
        )
        for _ in range(2)
    ]
    ring = KeyRing(GivenKeys(KEY))
    account_id = await add_account(
        catalogs[0],
        ring,
        org_id=await ensure_org(catalogs[0], "org"),
        name="ours",
        values={"sign_in": "user"},
        credential=None,
    )
    stores: list[TokenStore] = [CatalogTokenStore(one, ring, turn_ms=1_000) for one in catalogs]
    yield Rig(stores, account_id)
    for one in catalogs:
        await one.aclose()


async def test_there_is_nothing_at_first(rig: Rig) -> None:
    assert await rig.first.load(rig.account_id) is None
    assert await rig.first.revision(rig.account_id) is None


async def test_what_is_kept_is_there_for_everybody(rig: Rig) -> None:
    assert await rig.first.save(rig.account_id, "cache ü", after=None) == 1
    kept = await rig.second.load(rig.account_id)
    assert kept is not None
    assert (kept.cache, kept.revision) == ("cache ü", 1)
    assert await rig.second.revision(rig.account_id) == 1
    assert "cache" not in repr(kept).replace("KeptTokens", "")


async def test_a_late_writer_changes_nothing(rig: Rig) -> None:
    await rig.first.save(rig.account_id, "1", after=None)
    assert await rig.second.save(rig.account_id, "2", after=1) == 2
    assert await rig.first.save(rig.account_id, "late", after=1) is None
    kept = await rig.first.load(rig.account_id)
    assert kept is not None
    assert kept.cache == "2"


async def test_tokens_of_no_account_are_not_kept(rig: Rig) -> None:
    with pytest.raises(NotFound):
        await rig.first.save("nobody", "1", after=None)


async def test_one_turn_at_a_time(rig: Rig) -> None:
    inside = 0
    most = 0

    async def take(store: TokenStore) -> None:
        nonlocal inside, most
        async with store.turn(rig.account_id):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.01)
            inside -= 1

    await asyncio.gather(*(take(store) for store in (rig.first, rig.second) * 3))
    assert most == 1


async def test_the_turn_of_the_dead_ends(rig: Rig) -> None:
    dead = rig.first.turn(rig.account_id)
    await dead.__aenter__()
    async with asyncio.timeout(20), rig.second.turn(rig.account_id):
        pass


async def test_turns_of_two_accounts_do_not_meet(rig: Rig) -> None:
    async with rig.first.turn(rig.account_id), rig.first.turn("another"):
        pass


async def test_waiting_ends_with_a_sentence(rig: Rig) -> None:
    first = rig.first
    assert isinstance(first, CatalogTokenStore)
    impatient = CatalogTokenStore(first._catalog, first._ring, turn_ms=50)
    async with rig.second.turn(rig.account_id):
        with pytest.raises(Transient, match="for too long"):
            async with impatient.turn(rig.account_id):
                pass
