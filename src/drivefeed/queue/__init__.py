"""The queue room: BullMQ behind the Queue port, and the Valkey server we start ourselves.

What is named here is imported when it is asked for: the table of queues is read by commands that
have no use for BullMQ, which takes half a second to load.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drivefeed.queue.bullmq import BullmqQueue
    from drivefeed.queue.embedded import EmbeddedValkey, embedded_url
    from drivefeed.queue.events import QueueEvent
    from drivefeed.queue.table import QUEUES, QueueSpec, payload_schema, queues_json

__all__ = [
    "QUEUES",
    "BullmqQueue",
    "EmbeddedValkey",
    "QueueEvent",
    "QueueSpec",
    "embedded_url",
    "payload_schema",
    "queues_json",
]

_PLACES = {
    "BullmqQueue": "bullmq",
    "EmbeddedValkey": "embedded",
    "embedded_url": "embedded",
    "QueueEvent": "events",
    "QUEUES": "table",
    "QueueSpec": "table",
    "payload_schema": "table",
    "queues_json": "table",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
