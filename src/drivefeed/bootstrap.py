"""The only place where parts meet: settings in, open parts out.

Each part is imported where it is opened: a command that only asks the catalog answers before the
libraries of the others would have been loaded.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drivefeed.domain.errors import NeedsAttention, NotFound
from drivefeed.domain.model import Policy
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import DriveRef
from drivefeed.system import SystemClock, SystemIds, no_checkpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.index_jobs import CatalogIndexJobs
    from drivefeed.indexer.search import Searcher
    from drivefeed.indexer.shelf import Shelf
    from drivefeed.ports import Checkpoint, Clock, Ids, ObjectStore
    from drivefeed.settings import AccountSettings, ConnectionSettings, Settings
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.source import GraphSource


@dataclass(slots=True)
class Surroundings:
    """What tests replace: time, ids, and the places where they may kill the process."""

    clock: Clock
    ids: Ids
    checkpoint: Checkpoint

    @classmethod
    def real(cls) -> Surroundings:
        """Return the surroundings of production."""
        return cls(SystemClock(), SystemIds(), no_checkpoint)


@dataclass(slots=True)
class Parts:
    """Everything that stays open while the daemon or a command runs."""

    settings: Settings
    around: Surroundings
    catalog: Catalog
    source: GraphSource
    accounts: dict[str, GraphAccount]
    store: ObjectStore
    index: Shelf
    jobs: CatalogIndexJobs

    @property
    def searcher(self) -> Searcher:
        """Search over the index."""
        from drivefeed.indexer.search import Searcher

        return Searcher(self.index)


def make_data_dir(settings: Settings) -> None:
    """Make the data folder, readable by its owner alone.

    Raises:
        NeedsAttention: it cannot be made.
    """
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NeedsAttention(
            f"The data folder '{settings.data_dir}' cannot be made: {error.strerror}. "
            "Choose another one with DRIVEFEED_DATA_DIR.",
            reason=Reason.MISCONFIGURED,
        ) from error


@asynccontextmanager
async def open_memory(
    settings: Settings, around: Surroundings | None = None
) -> AsyncIterator[Catalog]:
    """Open the catalog alone, for what needs nothing else."""
    from drivefeed.catalog.engine import open_catalog

    around = around or Surroundings.real()
    make_data_dir(settings)
    catalog = await open_catalog(
        settings.catalog_url, clock=around.clock, ids=around.ids, checkpoint=around.checkpoint
    )
    try:
        yield catalog
    finally:
        await catalog.aclose()


@asynccontextmanager
async def open_parts(
    settings: Settings, around: Surroundings | None = None
) -> AsyncIterator[Parts]:
    """Open catalog, source, store and index; nothing is asked of them yet."""
    from drivefeed.catalog.index_jobs import CatalogIndexJobs
    from drivefeed.embedding import open_shelf
    from drivefeed.sources.graph.source import GraphSource

    around = around or Surroundings.real()
    async with AsyncExitStack() as stack:
        catalog = await stack.enter_async_context(open_memory(settings, around))
        accounts: dict[str, GraphAccount] = {}
        source = GraphSource(
            accounts,
            clock=around.clock,
            ids=around.ids,
            allowance=settings.ru_per_minute,
            ru_share=settings.ru_share,
        )
        stack.push_async_callback(source.aclose)
        store = open_store(settings)
        stack.push_async_callback(store.aclose)
        index = await open_shelf(settings, catalog)
        stack.push_async_callback(index.aclose)
        parts = Parts(
            settings=settings,
            around=around,
            catalog=catalog,
            source=source,
            accounts=accounts,
            store=store,
            index=index,
            jobs=CatalogIndexJobs(catalog),
        )
        for account in settings.accounts:
            await add_account(parts, account)
        yield parts


def open_store(settings: Settings) -> ObjectStore:
    """Return the object store of the settings: S3, or a folder."""
    if settings.s3 is None:
        from drivefeed.stores.directory import DirectoryStore

        return DirectoryStore(settings.data_dir / "objects")
    from drivefeed.stores.s3 import S3Store

    s3 = settings.s3
    return S3Store(
        s3.bucket,
        endpoint_url=s3.endpoint_url,
        region=s3.region,
        access_key=s3.access_key.get_secret_value() if s3.access_key else None,
        secret_key=s3.secret_key.get_secret_value() if s3.secret_key else None,
        prefix=s3.prefix,
    )


async def add_account(parts: Parts, account: AccountSettings) -> str:
    """Make an account of the settings known; return its id."""
    from drivefeed.catalog.connecting import ensure_account, ensure_org
    from drivefeed.sources.graph.account import ClientSecret, GraphAccount

    org_id = await ensure_org(parts.catalog, account.org)
    account_id = await ensure_account(parts.catalog, org_id, account.name)
    parts.accounts[account_id] = GraphAccount(
        account_id=account_id,
        name=account.name,
        tenant_id=account.tenant_id,
        client_id=account.client_id,
        sign_in=ClientSecret(account.client_secret.get_secret_value()),
        authority=account.authority,
        graph_url=account.graph_url,
        ca_file=str(account.ca_file) if account.ca_file else None,
        cloud=account.cloud,
    )
    return account_id


async def add_connection(parts: Parts, wanted: ConnectionSettings) -> str:
    """Resolve a folder once, to ids, and connect it; return the connection's id.

    Raises:
        NeedsAttention: the account or the folder does not exist, or may not be read.
    """
    from drivefeed.catalog.connecting import connect, ensure_account, ensure_drive, ensure_org

    account = next((a for a in parts.settings.accounts if a.name == wanted.account), None)
    if account is None:
        raise NeedsAttention(
            f"A connection names the account '{wanted.account}', and there is none of that name.",
            reason=Reason.MISCONFIGURED,
        )
    org_id = await ensure_org(parts.catalog, account.org)
    account_id = await ensure_account(parts.catalog, org_id, account.name)
    ref = DriveRef(account_id, wanted.drive_id)
    remote = await parts.source.drive(ref)
    try:
        root = await parts.source.item_by_path(ref, wanted.folder)
    except NotFound as error:
        raise NeedsAttention(
            f"Drive '{remote.name}' has no folder '{wanted.folder}'.",
            reason=Reason.FOLDER_GONE,
        ) from error
    drive_id = await ensure_drive(
        parts.catalog,
        org_id=org_id,
        account_id=account_id,
        cloud=account.cloud,
        remote=remote,
        interval_ms=int(parts.settings.poll_seconds * 1000),
    )
    return await connect(
        parts.catalog,
        drive_id=drive_id,
        root_item_id=root.item_id,
        name=wanted.name or wanted.folder or remote.name,
        policy=_policy(wanted),
    )


def _policy(wanted: ConnectionSettings) -> Policy:
    return Policy(
        subfolders=wanted.subfolders,
        include=tuple(wanted.include),
        exclude=tuple(wanted.exclude),
        types=tuple(one.lower().lstrip(".") for one in wanted.types),
        max_bytes=wanted.max_bytes,
        on_delete=wanted.on_delete,
        grace_ms=int(wanted.grace_seconds * 1000),
        brake_count=wanted.brake_count,
        brake_percent=wanted.brake_percent,
        brake_floor=wanted.brake_floor,
    )


async def connect_all(parts: Parts) -> list[str]:
    """Connect every folder of the settings; return the connections' ids."""
    return [await add_connection(parts, wanted) for wanted in parts.settings.connections]
