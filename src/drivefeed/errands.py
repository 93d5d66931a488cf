"""What a daemon does beside its queues: accounts, sign-ins that idle, connections, and answers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from drivefeed.assembly import open_reindexing
from drivefeed.declared_folders import connect_all
from drivefeed.domain.errors import DrivefeedError
from drivefeed.services.idle_sign_ins import LOOK_EVERY_SECONDS, refresh_idle_sign_ins
from drivefeed.telemetry import log
from drivefeed.web.health import HealthServer, serving_health
from drivefeed.web.local import LocalApi

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from drivefeed.bootstrap import Parts
    from drivefeed.indexer.indexing import Indexing
    from drivefeed.roles import Role
    from drivefeed.services.health import Health
    from drivefeed.services.index_turns import IndexTurns
    from drivefeed.services.reindex import Reindexing
    from drivefeed.settings import Settings

_CONNECT_AGAIN_SECONDS = 10.0
_ACCOUNTS_SECONDS = 5.0
"""Between two looks at the catalog for accounts and embeddings that were added or changed."""

_log = log("daemon")


class Errands:
    """Loops of one process over open parts; each runs until it is cancelled or has nothing left."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._accounts_changed = asyncio.Event()

    async def follow_accounts(self) -> None:
        """Open accounts and embeddings that were added or changed elsewhere; cheap without any."""
        book = self._parts.signing.book
        said: frozenset[str] = frozenset()
        while True:
            for words in book.left_out - said:
                _log.warning("account_left_out", error=words)
            said = book.left_out
            await asyncio.sleep(_ACCOUNTS_SECONDS)
            try:
                for name in await book.refresh():
                    _log.info("account_opened", account=name)
                    self._accounts_changed.set()
                # Another address or key of an embedding service that an organization chose.
                for org_id in await self._parts.embeddings.refresh(self._parts.index):
                    _log.info("embedding_opened", org_id=org_id)
            except DrivefeedError as error:
                _log.warning("accounts_wait", error=str(error))

    async def use_idle_sign_ins(self) -> None:
        """Use people's sign-ins that nothing else uses, before Entra forgets them."""
        signing = self._parts.signing
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            try:
                for name in await refresh_idle_sign_ins(
                    signing.catalog, signing.accounts, signing.credential
                ):
                    _log.info("idle_sign_in_refreshed", account=name)
            except DrivefeedError as error:
                _log.warning("idle_sign_ins_wait", error=str(error))

    async def connect(self) -> None:
        """Connect the folders of the settings; keep trying while Microsoft does not answer."""
        while True:
            try:
                await connect_all(self._parts)
            except DrivefeedError as error:
                _log.warning("connections_wait", error=str(error))
                self._accounts_changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CONNECT_AGAIN_SECONDS):
                        await self._accounts_changed.wait()
            else:
                return


async def serve_health(
    settings: Settings, role: Role, health: Health, stack: AsyncExitStack
) -> None:
    """Serve health checks on a port until ``stack`` ends.

    The role with the index has a socket for that, and gets a port only where the settings say so.

    Raises:
        NeedsAttention: something else listens there.
    """
    if role.indexes and settings.health_port is None:
        return
    server = HealthServer(
        health,
        folder=settings.data_dir,
        role=role.name,
        host=settings.health_host,
        port=settings.health_port or 0,
    )
    await stack.enter_async_context(serving_health(server))
    _log.info("health_check", url=server.url)


def open_door(
    parts: Parts, indexing: Indexing | None, health: Health, turns: IndexTurns | None = None
) -> tuple[LocalApi | None, Reindexing | None]:
    """Make what answers commands on this machine, where the index is: searches, and reindexing."""
    if indexing is None:
        return None, None
    reindexing = open_reindexing(parts, indexing, turns)
    index = parts.index
    health.has_model = lambda: index.models_loaded > 0
    local = LocalApi(
        parts.settings.data_dir,
        catalog=parts.catalog,
        searcher=parts.searcher,
        index=index,
        reindexing=reindexing,
        health=health,
    )
    return local, reindexing
