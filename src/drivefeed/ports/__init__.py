"""The doors to the outside. Stages and services know these protocols and nothing behind them.

Every implementation passes the contract suite of its port in ``tests/contracts``. Times are
milliseconds since the epoch unless a name says seconds. Adapters raise only the errors of
:mod:`drivefeed.domain.errors`.
"""

from __future__ import annotations

from drivefeed.ports.index_jobs import IndexJob, IndexJobs, IndexJobState
from drivefeed.ports.ingestion import BackendState, BackendStatus, IngestionBackend, Submission
from drivefeed.ports.object_store import ObjectStore, StoredObject
from drivefeed.ports.queue import Delivery, DeliveryWorker, JobSpec, Queue, Stage
from drivefeed.ports.source import ChangeNotifications, Download, Granted, Source, SubscriptionWish
from drivefeed.ports.surroundings import Checkpoint, Clock, Ids
from drivefeed.ports.vectors import Embedder, Point, RoundRow, SearchFilter, SearchHit, VectorIndex

__all__ = [
    "BackendState",
    "BackendStatus",
    "ChangeNotifications",
    "Checkpoint",
    "Clock",
    "Delivery",
    "DeliveryWorker",
    "Download",
    "Embedder",
    "Granted",
    "Ids",
    "IndexJob",
    "IndexJobState",
    "IndexJobs",
    "IngestionBackend",
    "JobSpec",
    "ObjectStore",
    "Point",
    "Queue",
    "RoundRow",
    "SearchFilter",
    "SearchHit",
    "Source",
    "Stage",
    "StoredObject",
    "Submission",
    "SubscriptionWish",
    "VectorIndex",
]
