"""What organizations chose to be embedded with, and the collections that are made with it."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select

from drivefeed.catalog.audit_log import entries_of
from drivefeed.catalog.collection_rows import Made
from drivefeed.catalog.collections import (
    begin_building,
    collections_of,
    forget_old,
    give_up_building,
    orgs_with_collections,
    put_in_use,
    remember_active,
)
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.credentials import census
from drivefeed.catalog.index_tables import org_embeddings
from drivefeed.catalog.org_embeddings import (
    Choice,
    Wish,
    choice_of,
    choose,
    choose_none,
    revisions,
    wanted_by,
)
from drivefeed.catalog.resealing import reseal_some
from drivefeed.domain.errors import NeedsAttention
from drivefeed.secrets.places import GivenKeys
from drivefeed.secrets.ring import KeyRing
from drivefeed.secrets.sealing import Key

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

SECRET = "made-up-key-of-a-service"
WISH = Wish("openai", "words", "http://127.0.0.1:9/v1", {"dimension": 8}, SECRET)
COMMON = Made("index", "local", "small", 4)
INDEX = "embedded"


def ring_of(*keys: Key) -> KeyRing:
    return KeyRing(GivenKeys(",".join(base64.b64encode(key.secret).decode() for key in keys)))


@pytest.fixture
def ring() -> KeyRing:
    return ring_of(Key.new())


@pytest.fixture
async def org_id(catalog: Catalog) -> str:
    return await ensure_org(catalog, "org")


def made_with(choice: Choice) -> Made:
    dimension = choice.wish.options["dimension"]
    return Made("index", choice.wish.provider, choice.wish.model, dimension, choice.choice_id)


async def build(catalog: Catalog, org_id: str, choice: Choice) -> None:
    await begin_building(catalog, INDEX, made_with(choice), leave_out=False, org_id=org_id)


async def swap(catalog: Catalog, org_id: str) -> None:
    async with catalog.write("reindex.swap") as connection:
        await put_in_use(connection, INDEX, org_id)


async def test_a_key_is_sealed_and_told_to_nobody(
    catalog: Catalog, ring: KeyRing, org_id: str
) -> None:
    assert await wanted_by(catalog, ring, org_id) is None
    made = await choose(catalog, ring, org_id, WISH, actor="clerk")
    assert await wanted_by(catalog, ring, org_id) == made
    assert made.wish.api_key == SECRET
    assert SECRET not in repr(made)
    async with catalog.read() as connection:
        row = (await connection.execute(select(org_embeddings))).mappings().one()
    assert SECRET.encode() not in row["sealed"]
    assert SECRET not in json.dumps({**row, "sealed": None})
    (entry,) = await entries_of(catalog, org_id)
    assert (entry.actor, entry.action, entry.before) == ("clerk", "org.embedding_chosen", None)
    assert entry.after["has_key"] is True
    assert SECRET not in json.dumps(entry.after)
    with pytest.raises(NeedsAttention, match="sealed with key"):
        await wanted_by(catalog, ring_of(Key.new()), org_id)


async def test_another_key_or_address_is_the_same_choice(
    catalog: Catalog, ring: KeyRing, org_id: str
) -> None:
    first = await choose(catalog, ring, org_id, WISH, actor="clerk")
    moved = replace(
        WISH, base_url="http://127.0.0.1:8", api_key="another", options={"dimension": 8, "batch": 2}
    )
    second = await choose(catalog, ring, org_id, moved, actor="clerk")
    assert (second.choice_id, second.revision) == (first.choice_id, 2)
    assert await wanted_by(catalog, ring, org_id) == second
    assert await revisions(catalog) == {first.choice_id: 2}
    other = await choose(catalog, ring, org_id, replace(WISH, model="other"), actor="clerk")
    assert other.choice_id != first.choice_id
    # Nothing was made with the former one.
    assert await revisions(catalog) == {other.choice_id: 1}


async def test_a_choice_is_kept_for_as_long_as_a_collection_is_made_with_it(
    catalog: Catalog, ring: KeyRing, org_id: str
) -> None:
    await remember_active(catalog, INDEX, COMMON)
    first = await choose(catalog, ring, org_id, WISH, actor="clerk")
    await build(catalog, org_id, first)
    await swap(catalog, org_id)
    second = await choose(catalog, ring, org_id, replace(WISH, model="other"), actor="clerk")
    assert set(await revisions(catalog)) == {first.choice_id, second.choice_id}
    kept = await choice_of(catalog, ring, first.choice_id)
    assert kept == replace(first, wanted=False)
    await build(catalog, org_id, second)
    await swap(catalog, org_id)
    assert set(await revisions(catalog)) == {second.choice_id}
    await choose_none(catalog, ring, org_id, actor="clerk")
    assert await wanted_by(catalog, ring, org_id) is None
    assert set(await revisions(catalog)) == {second.choice_id}
    await begin_building(catalog, INDEX, COMMON, leave_out=False, org_id=org_id, is_returning=True)
    await swap(catalog, org_id)
    assert await revisions(catalog) == {}


async def test_collections_of_an_organization_come_and_go(
    catalog: Catalog, ring: KeyRing, org_id: str
) -> None:
    await remember_active(catalog, INDEX, COMMON)
    await begin_building(catalog, INDEX, replace(COMMON, model="larger"), leave_out=False)
    assert await orgs_with_collections(catalog, INDEX) == []
    choice = await choose(catalog, ring, org_id, WISH, actor="clerk")
    own = replace(made_with(choice), name=f"index-org-{org_id}-1")
    await build(catalog, org_id, choice)
    known = await collections_of(catalog, INDEX, org_id)
    assert (known.active, known.building, known.is_returning) == (None, own, False)
    assert await orgs_with_collections(catalog, INDEX) == [org_id]
    await swap(catalog, org_id)
    known = await collections_of(catalog, INDEX, org_id)
    assert (known.active, known.building, known.old) == (own, None, ())
    # Points are left in both of the common ones: what is in use, and what is being built.
    assert set(known.leaving) == {"index", "index-2"}
    for name in known.leaving:
        await forget_old(catalog, INDEX, name, org_id)
    assert (await collections_of(catalog, INDEX, org_id)).leaving == ()
    common = await collections_of(catalog, INDEX)
    assert (common.active, common.old) == (COMMON, ())
    assert common.building == replace(COMMON, name="index-2", model="larger")


async def test_a_return_that_is_given_up_leaves_points_to_be_removed(
    catalog: Catalog, ring: KeyRing, org_id: str
) -> None:
    await remember_active(catalog, INDEX, COMMON)
    choice = await choose(catalog, ring, org_id, WISH, actor="clerk")
    await build(catalog, org_id, choice)
    await give_up_building(catalog, INDEX, org_id)
    first = f"index-org-{org_id}-1"
    assert (await collections_of(catalog, INDEX, org_id)).old == (first,)
    await forget_old(catalog, INDEX, first, org_id)
    await build(catalog, org_id, choice)
    await swap(catalog, org_id)
    known = await collections_of(catalog, INDEX, org_id)
    assert known.active is not None
    assert known.active.name == f"index-org-{org_id}-2"
    await forget_old(catalog, INDEX, "index", org_id)
    begun = await begin_building(
        catalog, INDEX, COMMON, leave_out=False, org_id=org_id, is_returning=True
    )
    assert (begun.building, begun.is_returning) == (COMMON, True)
    known = await give_up_building(catalog, INDEX, org_id)
    assert (known.building, known.leaving, known.old) == (None, ("index",), ())
    # The common one is in use by others, whatever this one gives up.
    assert (await collections_of(catalog, INDEX)).active == COMMON


async def test_a_rotation_seals_keys_of_services_too(catalog: Catalog, org_id: str) -> None:
    old, new = Key.new(), Key.new()
    made = await choose(catalog, ring_of(old), org_id, WISH, actor="clerk")
    assert await census(catalog) == {old.key_id: 1}
    done = await reseal_some(catalog, ring_of(new, old))
    assert (done.done, done.refused) == (1, [])
    assert await census(catalog) == {new.key_id: 1}
    assert await wanted_by(catalog, ring_of(new), org_id) == made
    lost = await reseal_some(catalog, ring_of(Key.new()))
    assert [whose for whose, _ in lost.refused] == ["the embedding of org"]
