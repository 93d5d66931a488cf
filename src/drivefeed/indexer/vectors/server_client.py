"""Clients of qdrant-client: to a server, or its imitation in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drivefeed.outbound import Outbound


def remote(url: str, api_key: str | None, timeout: int, outbound: Outbound) -> Any:
    """Return a client of the server at ``url``; call it in a thread, it reads certificates."""
    from qdrant_client import AsyncQdrantClient

    # The compatibility check would be a blocking request of its own; open_collection tells more.
    return AsyncQdrantClient(
        url=url,
        api_key=api_key,
        timeout=timeout,
        check_compatibility=False,
        transport=outbound.transport(),
    )


def in_process(path: str) -> Any:
    """Return the imitation, on a folder or in ``:memory:``."""
    from qdrant_client import AsyncQdrantClient

    return AsyncQdrantClient(":memory:") if path == ":memory:" else AsyncQdrantClient(path=path)
