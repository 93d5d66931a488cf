"""What a life may do instead of a command: functions that do what pages, clerks and rare hours do.

A scene may die at any checkpoint and is then played again from its beginning, as a person would
try again; so each of its steps takes it well if it was done before.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drivefeed.account_parts import open_ring
from drivefeed.bootstrap import Surroundings, open_memory, open_parts
from drivefeed.catalog import (
    api_keys,
    collections,
    heartbeats,
    leaving,
    orgs,
    reminders,
    sessions,
)
from drivefeed.catalog.account_removal import remove_account
from drivefeed.catalog.account_states import note_state, note_unreached
from drivefeed.catalog.accounts import add_account, change_account, find_account
from drivefeed.catalog.api_keys import Kind
from drivefeed.catalog.connecting import ensure_account, ensure_drive, ensure_org
from drivefeed.catalog.control import rename, set_paused
from drivefeed.catalog.credentials import CredentialKind
from drivefeed.catalog.declared import apply_declared
from drivefeed.catalog.key_revoking import revoke_key
from drivefeed.catalog.progress import progress_of
from drivefeed.catalog.renewal import accept_certificate, offer_certificate
from drivefeed.catalog.resuming import resume_account
from drivefeed.catalog.waiting import clear, unattended
from drivefeed.domain.errors import DrivefeedError
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import RemoteDrive
from drivefeed.services.token_store import CatalogTokenStore
from drivefeed.settings import Settings, load_settings
from drivefeed.sources.graph.account import GraphAccount, SignedInUser
from drivefeed.sources.graph.delegated import DelegatedCredential

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog

SPARE = "another index"
THREE = 3


def settings_here() -> Settings:
    folder = Path(os.environ["DRIVEFEED_DATA_DIR"])
    os.environ["DRIVEFEED_CONFIG"] = str(folder / "drivefeed.toml")
    return load_settings(data_dir=folder)


@asynccontextmanager
async def catalog_here() -> AsyncIterator[Catalog]:
    async with open_memory(settings_here(), Surroundings.real()) as catalog:
        yield catalog


def office() -> None:
    """What people change by commands and at the status page."""
    asyncio.run(_office())


async def _office() -> None:
    async with catalog_here() as catalog:
        org_id = await ensure_org(catalog, "test")
        await _organizations(catalog)
        await _accounts(catalog, org_id)
        await _keys(catalog, org_id)
        await _connections(catalog)
        made = (await collections.collections_of(catalog, "embedded")).active
        assert made is not None
        await collections.remember_active(catalog, SPARE, made)
        await collections.begin_building(catalog, SPARE, made, leave_out=False)
        await collections.give_up_building(catalog, SPARE)


async def _organizations(catalog: Catalog) -> None:
    known = {str(one.name) for one in await orgs.all_orgs(catalog)}
    if not known & {"branch", "branch office"}:
        await orgs.add_org(catalog, "branch")
        known.add("branch")
    if "branch" in known:
        await orgs.rename_org(catalog, "branch", "branch office")


async def _accounts(catalog: Catalog, org_id: str) -> None:
    ring = open_ring(settings_here())
    values = {"sign_in": "secret", "tenant_id": "t", "client_id": "c"}
    secret = (CredentialKind.SECRET, b"made up")
    await ensure_account(catalog, org_id, "spare")
    with suppress(DrivefeedError):  # it is there already
        await add_account(
            catalog, ring, org_id=org_id, name="leaver", values=values, credential=secret
        )
    leaver = await find_account(catalog, "leaver")
    await change_account(catalog, ring, leaver.account_id, values=values, credential=secret)
    await offer_certificate(catalog, ring, leaver.account_id, pem=b"made up", actor="scene")
    leaver = await find_account(catalog, "leaver")
    await accept_certificate(
        catalog, leaver.account_id, revision=leaver.revision, expires_at=catalog.clock.now()
    )
    await note_unreached(catalog, leaver.account_id, "made up")
    await note_state(catalog, leaver.account_id, Reason.NEEDS_SIGN_IN, "made up")
    await resume_account(catalog, leaver.account_id)
    await ensure_drive(  # as a plan does
        catalog,
        org_id=org_id,
        account_id=leaver.account_id,
        cloud="global",
        remote=RemoteDrive("b!planned", "business", "Planned", None, "root"),
        interval_ms=60_000,
    )
    await remove_account(catalog, leaver)


async def _keys(catalog: Catalog, org_id: str) -> None:
    # A name is taken for as long as its key or link is.
    clerk = f"clerk {catalog.ids.new()}"
    fresh = await api_keys.create_key(catalog, org_id=org_id, name=clerk)
    await api_keys.key_behind(catalog, fresh.text, Kind.KEY)
    await revoke_key(catalog, clerk)
    link = await sessions.create_link(catalog, org_id=org_id, name=clerk)
    session = await sessions.redeem_link(catalog, link.text)
    assert session is not None
    behind = await api_keys.key_behind(catalog, session.text, Kind.SESSION)
    assert behind is not None
    await sessions.end_session(catalog, behind)


async def _connections(catalog: Catalog) -> None:
    (one,) = [each.connection for each in await progress_of(catalog)]
    await rename(catalog, one, "The drive", actor="clerk")
    await set_paused(catalog, one, paused=True)
    (paused,) = [each.connection for each in await progress_of(catalog)]
    await set_paused(catalog, paused, paused=False)
    await apply_declared(catalog, [], [], actor="clerk")
    await leaving.discard_removals(catalog, one.connection_id)
    await leaving.approve_removals(catalog, one.connection_id)


def refresh(*, account: dict[str, Any], user: dict[str, str], cache: str) -> None:
    """Refresh a person's tokens, whatever is kept of them."""
    asyncio.run(_refresh(account, user, cache))


async def _refresh(account: dict[str, Any], user: dict[str, str], cache: str) -> None:
    async with catalog_here() as catalog:
        ring = open_ring(settings_here())
        org_id = await ensure_org(catalog, "test")
        values = {
            "sign_in": "user",
            "user_id": user["home_account_id"],
            "user_name": user["user_name"],
            **{key: account[key] for key in ("tenant_id", "client_id", "authority", "ca_file")},
        }
        with suppress(DrivefeedError):
            await add_account(
                catalog,
                ring,
                org_id=org_id,
                name="person",
                values=values,
                credential=(CredentialKind.TOKENS, cache.encode()),
            )
        row = await find_account(catalog, "person")
        facts = account | {"account_id": row.account_id, "name": "person"}
        credential = DelegatedCredential(
            GraphAccount(sign_in=SignedInUser(**user), **facts),
            CatalogTokenStore(catalog, ring, turn_ms=300),
            clock=catalog.clock,
            checkpoint=catalog.checkpoint,
        )
        first = await credential.get_token()
        await credential.renew(credential.generation, None)
        assert (await credential.get_token()).token != first.token
        await credential.close()


def leftovers() -> None:
    """Rows of a process that died elsewhere, a row for nothing, a question that was answered."""
    asyncio.run(_leftovers())


async def _leftovers() -> None:
    from sqlalchemy import select, update

    from drivefeed.catalog.tables import heartbeats as beats
    from drivefeed.catalog.tables import imports
    from drivefeed.catalog.tables import reminders as rows
    from drivefeed.stages.breaker import Breakers
    from drivefeed.stages.runner import Runner

    async with catalog_here() as catalog:
        async with catalog.read() as connection:
            found = await connection.execute(
                select(rows.c.subject_id, rows.c.number).where(rows.c.stage == "discover")
            )
            subject_id, number = found.one()
            asking = await connection.execute(
                # One whose question was answered in an earlier life is still not under way.
                select(imports.c.id).where(
                    imports.c.attention.is_not(None) | (imports.c.state == "discovered")
                )
            )
            asked = [str(key) for key in asking.scalars()]
        now = catalog.clock.now()
        runner = Runner(catalog, Breakers(catalog.clock, catalog.ids), owner="here")
        async with catalog.write("claim") as connection:
            claim = await reminders.claim(
                connection, subject_id=subject_id, number=number, owner="here", now=now, busy_ms=1
            )
        if claim is not None:
            await runner._let_go(claim)
        await heartbeats.beat(catalog, "gone", "up")
        async with catalog.write("claim") as connection:
            await connection.execute(
                update(beats).where(beats.c.owner == "gone").values(seen_at=now - 3_600_000)
            )
            await connection.execute(
                update(rows).where(rows.c.subject_id == subject_id).values(owner="gone")
            )
        assert await heartbeats.reap(catalog, own="here")
        for import_id in asked:
            await unattended(catalog, import_id)
            await clear(catalog, import_id)


def slow_up(*, pace_seconds: float) -> None:
    """A daemon that waits before each step on a file."""
    asyncio.run(_slow_up(pace_seconds))


async def _slow_up(pace_seconds: float) -> None:
    from drivefeed.daemon import Daemon

    async with open_parts(settings_here(), Surroundings.real()) as parts:
        daemon = Daemon(parts)
        daemon.pace_seconds = pace_seconds
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, daemon.stop)
        await daemon.run()
