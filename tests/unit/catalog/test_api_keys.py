"""Keys let in whom they should, and nobody else; links work once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from drivefeed.catalog.access_tables import api_keys
from drivefeed.catalog.api_keys import Kind, Scope, create_key, key_behind, list_keys
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.key_revoking import revoke_key
from drivefeed.catalog.sessions import (
    LINK_LIVES_MS,
    SESSION_LIVES_MS,
    create_link,
    end_session,
    open_session,
    redeem_link,
)
from drivefeed.domain.errors import AlreadyExists, NeedsAttention, NotFound

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from support.clock import ManualClock

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
async def org_id(catalog: Catalog) -> str:
    return await ensure_org(catalog, "org")


async def stored(catalog: Catalog) -> list[dict[str, object]]:
    async with catalog.read() as connection:
        return [dict(row) for row in (await connection.execute(select(api_keys))).mappings()]


async def test_a_key_lets_its_org_in_and_is_kept_as_a_hash(catalog: Catalog, org_id: str) -> None:
    made = await create_key(catalog, org_id=org_id, name="reports")

    found = await key_behind(catalog, made.text, Kind.KEY)

    assert found is not None
    assert (found.org_id, found.org_name, found.name) == (org_id, "org", "reports")
    assert made.text.startswith(found.prefix + "_")
    assert found.prefix.startswith("df_")
    (row,) = await stored(catalog)
    assert made.text not in str(row)
    assert made.text.removeprefix(found.prefix) not in str(row)
    assert made.text not in repr(made)


@pytest.mark.parametrize("spoil", [lambda t: t[:-1], lambda t: t + "x", str.upper, lambda _: "df_"])
async def test_another_text_lets_nobody_in(catalog: Catalog, org_id: str, spoil: object) -> None:
    made = await create_key(catalog, org_id=org_id, name="reports")

    assert await key_behind(catalog, spoil(made.text), Kind.KEY) is None  # type: ignore[operator]


async def test_no_kind_stands_for_another(catalog: Catalog, org_id: str) -> None:
    key = await create_key(catalog, org_id=org_id, name="key")
    link = await create_link(catalog, org_id=org_id, name="link")
    session = await open_session(catalog, key.key)

    for text, kind in ((key.text, Kind.KEY), (session.text, Kind.SESSION)):
        for asked in Kind:
            assert (await key_behind(catalog, text, asked) is not None) is (asked is kind)
    assert await redeem_link(catalog, key.text) is None
    assert await redeem_link(catalog, session.text) is None
    assert await redeem_link(catalog, link.text) is not None


async def test_an_expired_key_and_a_revoked_key_end(
    catalog: Catalog, org_id: str, clock: ManualClock
) -> None:
    short = await create_key(catalog, org_id=org_id, name="short", lives_ms=DAY_MS)
    long = await create_key(catalog, org_id=org_id, name="long")
    session = await open_session(catalog, long.key)
    clock.turn(ms=DAY_MS - SESSION_LIVES_MS)
    late = await open_session(catalog, short.key)
    clock.turn(ms=SESSION_LIVES_MS)

    assert await key_behind(catalog, short.text, Kind.KEY) is None
    assert await key_behind(catalog, late.text, Kind.SESSION) is None
    assert await key_behind(catalog, session.text, Kind.SESSION) is None
    assert await key_behind(catalog, long.text, Kind.KEY) is not None

    session = await open_session(catalog, long.key)
    (ended,) = await revoke_key(catalog, long.key.prefix)

    assert ended.key_id == long.key.key_id
    assert await key_behind(catalog, long.text, Kind.KEY) is None
    assert await key_behind(catalog, session.text, Kind.SESSION) is None
    assert await revoke_key(catalog, "long") == []
    with pytest.raises(NotFound, match="key list"):
        await revoke_key(catalog, "nobody")


async def test_keys_of_another_org_are_not_listed_and_not_revoked(
    catalog: Catalog, org_id: str
) -> None:
    other = await ensure_org(catalog, "other")
    made = await create_key(catalog, org_id=other, name="theirs")

    assert await list_keys(catalog, org_id=org_id) == []
    with pytest.raises(NotFound):
        await revoke_key(catalog, "theirs", org_id=org_id)
    assert [one.name for one in await list_keys(catalog)] == ["theirs"]
    assert await key_behind(catalog, made.text, Kind.KEY) is not None


async def test_a_link_signs_one_browser_in_once(catalog: Catalog, org_id: str) -> None:
    link = await create_link(catalog, org_id=org_id, name="anna")

    both = await asyncio.gather(*(redeem_link(catalog, link.text) for _ in range(2)))

    (session,) = [one for one in both if one is not None]
    assert session.key.kind is Kind.SESSION
    assert await key_behind(catalog, session.text, Kind.SESSION) is not None
    await end_session(catalog, session.key)
    assert await key_behind(catalog, session.text, Kind.SESSION) is None


async def test_a_link_that_nobody_used_ends_by_itself(
    catalog: Catalog, org_id: str, clock: ManualClock
) -> None:
    link = await create_link(catalog, org_id=org_id, name="anna")
    clock.turn(ms=LINK_LIVES_MS)

    assert await redeem_link(catalog, link.text) is None
    await create_link(catalog, org_id=org_id, name="next")
    assert [row["name"] for row in await stored(catalog)] == ["next"]


async def test_use_is_written_at_most_once_a_minute(
    catalog: Catalog, org_id: str, clock: ManualClock
) -> None:
    made = await create_key(catalog, org_id=org_id, name="busy")
    first = clock.now()
    seen = []
    for _ in range(5):
        await key_behind(catalog, made.text, Kind.KEY)
        seen.append((await list_keys(catalog))[0].used_at)
        clock.turn(seconds=20)

    assert seen == [first, first, first, first + 60_000, first + 60_000]


async def test_a_scope_includes_the_smaller_ones(catalog: Catalog, org_id: str) -> None:
    made = await create_key(catalog, org_id=org_id, name="w", scopes=[Scope.WRITE])

    assert made.key.allows(Scope.READ)
    assert made.key.allows(Scope.WRITE)
    assert not made.key.allows(Scope.ADMIN)
    assert (await open_session(catalog, made.key)).key.scopes == {Scope.READ}


async def test_one_name_names_one_key(catalog: Catalog, org_id: str, clock: ManualClock) -> None:
    other = await ensure_org(catalog, "other")
    first = await create_key(catalog, org_id=org_id, name="first")
    with pytest.raises(AlreadyExists, match=first.key.prefix):
        await create_key(catalog, org_id=org_id, name=" First ")
    theirs = await create_key(catalog, org_id=other, name="first", lives_ms=DAY_MS)

    with pytest.raises(NeedsAttention, match=f"{first.key.prefix}.*{theirs.key.prefix}"):
        await revoke_key(catalog, "first")
    assert await key_behind(catalog, first.text, Kind.KEY) is not None

    clock.turn(ms=DAY_MS)
    assert [one.key_id for one in await revoke_key(catalog, "first")] == [first.key.key_id]
    again = await create_key(catalog, org_id=org_id, name="first")
    assert again.key.name == "first"


@pytest.mark.parametrize("name", ["", "\x1b[2J", "df_0a1b2c3d_" + "A" * 43])
async def test_a_key_has_a_name_that_can_be_shown(catalog: Catalog, org_id: str, name: str) -> None:
    with pytest.raises(NeedsAttention):
        await create_key(catalog, org_id=org_id, name=name)
    assert await list_keys(catalog) == []
