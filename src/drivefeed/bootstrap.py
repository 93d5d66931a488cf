"""The only place where parts meet: settings in, open parts out. Each is imported when opened.

A command that only asks the catalog answers before the libraries of the others are loaded.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING

from drivefeed.account_parts import open_accounts
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.outward import outbound_of
from drivefeed.system import SystemClock, SystemIds, no_checkpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.account_parts import AccountParts
    from drivefeed.backends.signing import Credential
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.index_jobs import CatalogIndexJobs
    from drivefeed.embedding_of_orgs import Embeddings
    from drivefeed.indexer.library import Library
    from drivefeed.indexer.search import Searcher
    from drivefeed.ports import Checkpoint, Clock, Ids, IngestionBackend, ObjectStore
    from drivefeed.settings import Settings
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.source import GraphSource
    from drivefeed.stages.backends import Backends


STORE_FOLDER = "objects"
"""Below the data folder, where there is no S3 bucket."""
FOLDER_IDENTITY = "folder.id"
"""Below the data folder, where the catalog is elsewhere."""


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
    index: Library
    embeddings: Embeddings
    jobs: CatalogIndexJobs
    signing: AccountParts
    backends: Backends

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
        what = f"The data folder '{settings.data_dir}' cannot be made: {error.strerror}."
        if settings.data_dir.is_file():
            what = f"'{settings.data_dir}' is a file, and a folder for data is wanted."
        raise NeedsAttention(
            f"{what} Name another one with --data or DRIVEFEED_DATA_DIR.",
            reason=Reason.MISCONFIGURED,
        ) from error


def folder_identity(settings: Settings) -> str | None:
    """Return what tells the data folder from any other, also from a copy of it.

    It is made at the first call, in a folder that is there.

    Returns:
        None where the catalog lies in the folder, so that the folder's lock is the catalog's.

    Raises:
        NeedsAttention: the folder cannot be written.
    """
    if settings.database_url is None:
        return None
    path = settings.data_dir / FOLDER_IDENTITY
    try:
        with suppress(FileExistsError), path.open("x", encoding="ascii") as file:
            file.write(token_hex(16))
        return f"{path.read_text(encoding='ascii')}.{path.stat().st_ino}"
    except OSError as error:
        raise NeedsAttention(
            f"The file '{path}' cannot be written: {error.strerror}. Drivefeed needs a data folder "
            "of its own beside the database.",
            reason=Reason.MISCONFIGURED,
        ) from error


@asynccontextmanager
async def open_memory(
    settings: Settings, around: Surroundings | None = None
) -> AsyncIterator[Catalog]:
    """Open the catalog alone, for what needs nothing else."""
    from drivefeed.catalog.engine import PostgresLimits, open_catalog

    around = around or Surroundings.real()
    make_data_dir(settings)
    catalog = await open_catalog(
        settings.catalog_url,
        clock=around.clock,
        ids=around.ids,
        checkpoint=around.checkpoint,
        limits=PostgresLimits(**settings.database.model_dump()),
        # Nobody but a test turns its clock, and then no machine has another one.
        follows_database=isinstance(around.clock, SystemClock),
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
    from drivefeed.backends.embedded import EmbeddedBackend
    from drivefeed.catalog.index_jobs import CatalogIndexJobs
    from drivefeed.embedding_of_orgs import Embeddings
    from drivefeed.sources.graph.source import GraphSource

    around = around or Surroundings.real()
    async with AsyncExitStack() as stack:
        catalog = await stack.enter_async_context(open_memory(settings, around))
        signing = await open_accounts(settings, catalog)
        source = GraphSource(
            signing.accounts,
            credential=signing.credential,
            clock=around.clock,
            ids=around.ids,
            gates=signing.gates,
        )
        stack.push_async_callback(source.aclose)
        store = open_store(settings)
        stack.push_async_callback(store.aclose)
        embeddings = Embeddings(settings, catalog, signing.ring)
        stack.push_async_callback(embeddings.aclose)
        index = await embeddings.open_library()
        stack.push_async_callback(index.aclose)
        jobs = CatalogIndexJobs(catalog)
        parts = Parts(
            settings=settings,
            around=around,
            catalog=catalog,
            source=source,
            accounts=signing.accounts,
            store=store,
            index=index,
            embeddings=embeddings,
            jobs=jobs,
            signing=signing,
            backends=open_backends(settings, around, store, EmbeddedBackend(jobs, index)),
        )
        stack.push_async_callback(parts.backends.aclose)
        yield parts


def open_store(settings: Settings) -> ObjectStore:
    """Return the object store of the settings: S3, or a folder."""
    if settings.s3 is None:
        from drivefeed.stores.directory import DirectoryStore

        return DirectoryStore(settings.data_dir / STORE_FOLDER)
    from drivefeed.stores.s3 import S3Store

    s3 = settings.s3
    return S3Store(
        s3.bucket,
        endpoint_url=s3.endpoint_url,
        region=s3.region,
        access_key=s3.access_key.get_secret_value() if s3.access_key else None,
        secret_key=s3.secret_key.get_secret_value() if s3.secret_key else None,
        prefix=s3.prefix,
        outbound=outbound_of(settings),
    )


def open_backends(
    settings: Settings,
    around: Surroundings,
    store: ObjectStore,
    embedded: IngestionBackend | None = None,
) -> Backends:
    """Return our own backend, if it is given, and those of the settings.

    Nothing is connected yet.
    """
    from drivefeed.stages.backends import Backends

    if not settings.backends:
        return Backends(embedded)
    from drivefeed.backends.http import HttpBackend
    from drivefeed.backends.place import Place

    outbound = outbound_of(settings)
    page = settings.web_url.rstrip("/")
    others: dict[str, IngestionBackend] = {}
    credentials = backend_credentials(settings)
    for name, one in settings.backends.items():
        others[name] = HttpBackend(
            Place(
                name=name,
                url=one.url,
                credential=credentials[name],
                by_url=one.content == "url",
                timeout_seconds=one.timeout_seconds,
                ca_file=str(one.ca_file) if one.ca_file else None,
                call_url=f"{page}/v1/backends/{name}/calls" if one.calls else None,
                usage_owner=one.usage_owner,
            ),
            address=partial(store.address, seconds=one.url_seconds),
            outbound=outbound,
            clock=around.clock,
            ids=around.ids,
        )
    keeping = [name for name, one in settings.backends.items() if one.usage_owner == "backend"]
    return Backends(embedded, others, keeping_books=keeping)


def backend_credentials(settings: Settings) -> dict[str, Credential]:
    """Return the secrets that are shared with the backends of the settings, by name."""
    from drivefeed.backends.signing import Credential

    return {
        name: Credential(
            one.secret.get_secret_value(), "bearer" if one.auth == "bearer" else "hmac"
        )
        for name, one in settings.backends.items()
    }
