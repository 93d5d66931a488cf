"""What one process does of the whole: everything, the schedule, or the work of some queues."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.ports import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drivefeed.settings import Settings

INDEX_STAGES: Final = frozenset({Stage.INDEX, Stage.PUBLISH, Stage.WITHDRAW})
"""Stages that write to the vector index. An embedded one belongs to the worker that runs them."""


_LONGEST_HOST: Final = 40


@dataclass(frozen=True, slots=True)
class Role:
    """What a process does.

    Attributes:
        name: how heartbeats and logs call it.
        stages: whose queues it works on.
        schedules: whether it wakes drives, frees what the dead held, connects the folders of the
            settings and sends notices. Several may: each look is a question to the catalog.
        is_whole: whether it is the only process of its installation.
    """

    name: str
    stages: frozenset[Stage]
    schedules: bool
    is_whole: bool = False

    @property
    def indexes(self) -> bool:
        """Whether it writes to the vector index."""
        return bool(self.stages & INDEX_STAGES)


UP: Final = Role("up", frozenset(Stage), schedules=True, is_whole=True)
SCHEDULER: Final = Role("scheduler", frozenset(), schedules=True)


def owner_name(fresh: str) -> str:
    """Name this process in claims and heartbeats, within the width of their columns.

    Args:
        fresh: an id that nothing else has; its first eight characters are enough.
    """
    return f"{socket.gethostname()[:_LONGEST_HOST]}-{os.getpid()}-{fresh[:8]}"


def worker_for(names: Iterable[str]) -> Role:
    """Return the role of a worker on some queues; on all without names.

    Raises:
        NeedsAttention: there is no queue of a name.
    """
    wanted = [name.strip() for name in names if name.strip()]
    unknown = sorted(set(wanted) - set(Stage))
    if unknown:
        raise NeedsAttention(
            f"There is no queue '{unknown[0]}'. The queues are: {', '.join(Stage)}.",
            reason=Reason.MISCONFIGURED,
        )
    return Role("worker", frozenset(map(Stage, wanted)) or frozenset(Stage), schedules=False)


def require_shared(settings: Settings, role: Role) -> None:
    """Refuse to be one of many over parts that only one process can use.

    Raises:
        NeedsAttention: names each such part, and what to set instead.
    """
    missing = []
    if settings.catalog_url.startswith("sqlite"):
        missing.append("a Postgres instead of SQLite (DRIVEFEED_DATABASE_URL)")
    if settings.redis_url is None:
        missing.append("a Redis or Valkey instead of the embedded queue (DRIVEFEED_REDIS_URL)")
    if settings.s3 is None and not settings.shared_objects:
        missing.append(
            "an S3 bucket instead of the data folder (S3_BUCKET), or shared_objects = true where "
            "all processes see the same data folder"
        )
    if missing:
        lines = "\n".join(f"  · {one}" for one in missing)
        raise NeedsAttention(
            f"'drivefeed {role.name}' is one process of many, and they need parts that all of "
            f"them reach:\n{lines}\n'drivefeed up' runs everything in one process without them.",
            reason=Reason.MISCONFIGURED,
        )


def owns_embedded_index(settings: Settings, role: Role) -> bool:
    """Whether this process is one of many and the one to which the embedded index belongs."""
    return not role.is_whole and role.indexes and not settings.qdrant_url


def is_alone(settings: Settings, role: Role) -> bool:
    """Whether no other process works on the data folder, so that whoever did before is dead."""
    return settings.redis_url is None or (role.is_whole and settings.is_for_one_process)
