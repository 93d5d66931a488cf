from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, update

from drivefeed.catalog.access_tables import credentials
from drivefeed.catalog.account_removal import remove_account
from drivefeed.catalog.account_states import AccountState, account_revisions, note_state
from drivefeed.catalog.accounts import (
    add_account,
    all_accounts,
    change_account,
    declare_account,
    find_account,
)
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.credentials import (
    CredentialKind,
    census,
    load,
    revision_of,
    save,
)
from drivefeed.catalog.resealing import reseal_some
from drivefeed.domain.errors import AlreadyExists, NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason
from drivefeed.secrets.places import GivenKeys
from drivefeed.secrets.ring import KeyRing, Sealed
from drivefeed.secrets.sealing import Key

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from unit.catalog.rig import Rig

TOKENS = CredentialKind.TOKENS


def ring_of(*keys: Key) -> KeyRing:
    return KeyRing(GivenKeys(",".join(base64.b64encode(key.secret).decode() for key in keys)))


@pytest.fixture
def ring() -> KeyRing:
    return ring_of(Key.new())


@pytest.fixture
async def account_id(catalog: Catalog, ring: KeyRing) -> str:
    return await make(catalog, ring, "ours", b"first")


async def make(catalog: Catalog, ring: KeyRing, name: str, secret: bytes | None) -> str:
    return await add_account(
        catalog,
        ring,
        org_id=await ensure_org(catalog, "org"),
        name=name,
        values={"sign_in": "secret", "tenant_id": "t", "client_id": "c"},
        credential=None if secret is None else (CredentialKind.SECRET, secret),
    )


async def test_a_credential_comes_back_as_it_was(
    catalog: Catalog, ring: KeyRing, account_id: str
) -> None:
    found = await load(catalog, ring, account_id, CredentialKind.SECRET)
    assert found is not None
    assert (found.plain, found.revision) == (b"first", 1)
    assert "first" not in repr(found)
    async with catalog.read() as connection:
        (sealed,) = (await connection.execute(select(credentials.c.sealed))).scalars()
    assert b"first" not in sealed


async def test_only_who_knows_the_newest_revision_writes(
    catalog: Catalog, ring: KeyRing, account_id: str
) -> None:
    assert await save(catalog, ring, account_id, TOKENS, b"1", after=None) == 1
    assert await save(catalog, ring, account_id, TOKENS, b"late", after=None) is None
    assert await save(catalog, ring, account_id, TOKENS, b"2", after=1) == 2
    assert await save(catalog, ring, account_id, TOKENS, b"late", after=1) is None
    assert await save(catalog, ring, account_id, TOKENS, b"early", after=3) is None
    found = await load(catalog, ring, account_id, TOKENS)
    assert found is not None
    assert (found.plain, found.revision) == (b"2", 2)
    assert await revision_of(catalog, account_id, TOKENS) == 2
    assert await load(catalog, ring, account_id, CredentialKind.CERTIFICATE) is None


async def test_who_read_before_another_wrote_is_too_late(catalog: Catalog, account_id: str) -> None:
    """Sealing takes time; the comparison is made in the transaction that writes."""
    key = Key.new()
    loop = asyncio.get_running_loop()
    await save(catalog, ring_of(key), account_id, TOKENS, b"0", after=None)

    class Slow(KeyRing):
        def seal(self, plain: bytes, *, row_id: str) -> Sealed:
            quicker = save(catalog, ring_of(key), account_id, TOKENS, b"quick", after=1)
            asyncio.run_coroutine_threadsafe(quicker, loop).result(10)
            return super().seal(plain, row_id=row_id)

    slow = Slow(GivenKeys(base64.b64encode(key.secret).decode()))
    assert await save(catalog, slow, account_id, TOKENS, b"slow", after=1) is None
    found = await load(catalog, ring_of(key), account_id, TOKENS)
    assert found is not None
    assert found.plain == b"quick"


async def test_a_row_moved_to_another_account_does_not_open(
    catalog: Catalog, ring: KeyRing, account_id: str
) -> None:
    other = await make(catalog, ring, "theirs", b"second")
    async with catalog.write() as connection:
        rows = await connection.execute(
            select(credentials.c.sealed).where(credentials.c.account_id == other)
        )
        await connection.execute(
            update(credentials)
            .where(credentials.c.account_id == account_id)
            .values(sealed=rows.scalar_one())
        )
    with pytest.raises(NeedsAttention, match="belongs to another row"):
        await load(catalog, ring, account_id, CredentialKind.SECRET)


async def test_an_account_and_its_credential_are_made_together_or_not_at_all(
    catalog: Catalog,
) -> None:
    with pytest.raises(NeedsAttention, match="There is no key"):
        await make(catalog, KeyRing(GivenKeys("")), "ours", b"secret")
    assert await all_accounts(catalog) == []


async def test_a_name_counts_once_per_org(catalog: Catalog, ring: KeyRing, account_id: str) -> None:
    with pytest.raises(AlreadyExists, match="an account 'ours' already"):
        await make(catalog, ring, "ours", b"x")
    assert (await find_account(catalog, "OURS")).account_id == account_id
    with pytest.raises(NotFound, match=r"no account 'nobody'. Known: 'ours'"):
        await find_account(catalog, "nobody")


async def test_rotation_goes_on_where_it_was_interrupted(catalog: Catalog) -> None:
    old, new = Key.new(), Key.new()
    ids = [await make(catalog, ring_of(old), f"a{n}", f"s{n}".encode()) for n in range(5)]
    both = ring_of(new, old)
    step = await reseal_some(catalog, both, limit=2)
    assert step.done == 2
    assert await census(catalog) == {old.key_id: 3, new.key_id: 2}
    done, last = 0, ""
    while True:
        step = await reseal_some(catalog, both, beyond=last, limit=2)
        done += step.done
        if step.last is None:
            break
        last = step.last
    assert (done, step.refused) == (3, [])
    assert await census(catalog) == {new.key_id: 5}
    for number, account_id in enumerate(ids):
        found = await load(catalog, ring_of(new), account_id, CredentialKind.SECRET)
        assert found is not None
        assert (found.plain, found.revision) == (f"s{number}".encode(), 1)


async def test_rotation_names_what_it_cannot_open_and_does_the_rest(catalog: Catalog) -> None:
    lost, old, new = Key.new(), Key.new(), Key.new()
    await make(catalog, ring_of(lost), "lost", b"x")
    await make(catalog, ring_of(old), "kept", b"y")
    step = await reseal_some(catalog, ring_of(new, old))
    assert step.done == 1
    assert [name for name, _ in step.refused] == ["lost"]
    assert lost.key_id in step.refused[0][1]


FIRST = (
    "AADSTS700082: expired. Trace ID: 0a1b2c3d-1111-2222-3333-444455556666 "
    "Timestamp: 2026-11-30 12:00:01Z"
)


async def test_states_are_told_once(catalog: Catalog, ring: KeyRing, account_id: str) -> None:
    revisions = await account_revisions(catalog)
    assert not await note_state(catalog, account_id, None)
    assert await note_state(catalog, account_id, Reason.NEEDS_SIGN_IN, FIRST)
    again = FIRST.replace("0a1b2c3d", "99999999").replace("12:00:01", "12:34:56")
    assert not await note_state(catalog, account_id, Reason.NEEDS_SIGN_IN, again)
    one = await find_account(catalog, "ours")
    assert (one.state, one.reason) == (AccountState.NEEDS_SIGN_IN, Reason.NEEDS_SIGN_IN)
    assert one.detail == FIRST
    assert await note_state(catalog, account_id, Reason.NEEDS_SIGN_IN, "AADSTS50173: revoked")
    assert (await find_account(catalog, "ours")).detail == "AADSTS50173: revoked"
    assert await note_state(catalog, account_id, Reason.ACCESS_DENIED, "policy")
    assert (await find_account(catalog, "ours")).state is AccountState.BLOCKED
    assert await note_state(catalog, account_id, None)
    assert (await find_account(catalog, "ours")).detail is None
    assert await account_revisions(catalog) == revisions


async def test_a_change_calms_and_counts(catalog: Catalog, ring: KeyRing, account_id: str) -> None:
    await note_state(catalog, account_id, Reason.MISCONFIGURED, "wrong secret")
    await change_account(
        catalog,
        ring,
        account_id,
        values={"sign_in": "certificate"},
        credential=(CredentialKind.CERTIFICATE, b"pem"),
    )
    one = await find_account(catalog, "ours")
    assert (one.state, one.revision) == (AccountState.OK, 2)
    assert await load(catalog, ring, account_id, CredentialKind.SECRET) is None


async def test_declaring_again_changes_nothing(catalog: Catalog, ring: KeyRing) -> None:
    org_id = await ensure_org(catalog, "org")
    values = {"sign_in": "secret", "tenant_id": "t", "client_id": "c"}
    first = await declare_account(catalog, org_id=org_id, name="set", values=values)
    assert await declare_account(catalog, org_id=org_id, name="set", values=values) == first
    assert (await find_account(catalog, "set")).revision == 1
    await declare_account(catalog, org_id=org_id, name="set", values=values | {"tenant_id": "u"})
    one = await find_account(catalog, "set")
    assert (one.revision, one.tenant_id, one.declared) == (2, "u", True)
    with pytest.raises(NeedsAttention, match="comes from the settings"):
        await remove_account(catalog, one)


async def test_an_account_that_reads_a_drive_stays(
    catalog: Catalog, rig: Rig, ring: KeyRing
) -> None:
    with pytest.raises(NeedsAttention, match="is how drive 'Drive' is read"):
        await remove_account(catalog, await find_account(catalog, "account"))
    other = await make(catalog, ring, "unused", b"x")
    await remove_account(catalog, await find_account(catalog, "unused"))
    assert other not in await account_revisions(catalog)
    assert await census(catalog) == {}
