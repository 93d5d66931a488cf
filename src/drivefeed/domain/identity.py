"""Names that survive a retry: ids of documents and imports, version keys, object keys, job ids."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID, uuid5

if TYPE_CHECKING:
    from drivefeed.domain.remote import RemoteItem

NAMESPACE = UUID("5f1c5a36-6d0b-5c0e-9a55-0d8f6b1f8a11")
"""The root of all UUIDv5 that drivefeed derives; changing it would re-import everything."""

_PERSONAL = re.compile(r"[0-9A-Fa-f]{1,16}")


def drive_key(cloud: str, drive_id: str) -> str:
    """Return the one spelling of a drive's id within a cloud.

    Personal drives have 16 hex digits, which Microsoft writes in either case and sometimes
    without leading zeros (onedrive-api-docs#1890); all others contain a ``!`` and are told apart
    exactly.
    """
    if _PERSONAL.fullmatch(drive_id):
        return f"{cloud}:{drive_id.lower().zfill(16)}"
    return f"{cloud}:{drive_id}"


def document_id(org_id: str, source: str, item: str) -> str:
    """Return the id of a document; ``item`` is ``drive_key/item_id`` for files of a drive."""
    return str(uuid5(NAMESPACE, f"document\n{org_id}\n{source}\n{item}"))


def import_id(org_id: str, source: str, item: str, version_key: str) -> str:
    """Return the id of one version of a document: the same for every event that tells of it."""
    return str(uuid5(NAMESPACE, f"import\n{org_id}\n{source}\n{item}\n{version_key}"))


def point_id(import_: str, round_: int, chunk: int) -> str:
    """Return the id of a chunk's point in the vector index."""
    return str(uuid5(NAMESPACE, f"point\n{import_}\n{round_}\n{chunk}"))


def object_key(org_id: str, document: str, import_: str, round_: int) -> str:
    """Return the key of the bytes of one round of an import in the object store."""
    return f"{org_id}/{document}/{import_}/{round_}"


def idempotency_key(import_: str, round_: int) -> str:
    """Return the key under which a round of an import is submitted to a backend."""
    return f"{import_}:{round_}"


def index_job_id(key: str) -> str:
    """Return the embedded backend's job id for an idempotency key."""
    return str(uuid5(NAMESPACE, f"index\n{key}"))


def job_id(stage: str, subject_id: str, number: int) -> str:
    """Return BullMQ's id for a delivery; it never holds a colon, which Node refuses."""
    return f"{stage}-{subject_id}-{number}"


def delivered_by(job_id: str) -> tuple[str, int]:
    """Return the subject and the number that the id of a delivery names."""
    subject_id, _, number = job_id.partition("-")[2].rpartition("-")
    return subject_id, int(number)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What tells one version of a file from another, as far as the source says."""

    quick_xor: str | None
    etag: str | None
    size: int | None = None
    modified_at: int | None = None

    @classmethod
    def of(cls, item: RemoteItem) -> Fingerprint:
        """Take the fingerprint of an item as it was listed."""
        return cls(item.quick_xor or None, item.etag or None, item.size, item.modified_at)


def changed(old: Fingerprint, new: Fingerprint) -> bool:
    """Tell whether the content may have changed between two listings.

    Hash against hash where both have one, else eTag against eTag: a hash that appears later,
    because a download computed it, is no new version. An eTag that changed without a pair of
    hashes counts as a change; equal bytes are noticed after the download. Where an answer left
    out both, size and time decide, and what it left out of those is taken to be as before.
    """
    if old.quick_xor and new.quick_xor:
        return old.quick_xor != new.quick_xor
    if old.etag and new.etag:
        return old.etag != new.etag
    return _differ(old.size, new.size) or _differ(old.modified_at, new.modified_at)


def _differ(old: int | None, new: int | None) -> bool:
    return old is not None and new is not None and old != new


def version_key(item: RemoteItem) -> str:
    """Mint the version key of a new version; it is kept for as long as nothing ``changed``."""
    if item.quick_xor:
        return f"quickxor:{item.quick_xor}"
    if item.etag:
        return f"etag:{item.etag}"
    return f"listed:{item.modified_at}:{item.size}"
