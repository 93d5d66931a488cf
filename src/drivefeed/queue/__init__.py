"""The queue room: BullMQ behind the Queue port, and the Valkey server we start ourselves."""

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
