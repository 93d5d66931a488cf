"""Where a backend of another team is, and how it is spoken to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from drivefeed.backends.signing import Credential


@dataclass(frozen=True, slots=True)
class Place:
    """Where a backend is, and how it is spoken to.

    Attributes:
        name: what the settings call it.
        url: what comes before ``/v1``.
        credential: None only where nothing but this machine can reach it.
        by_url: whether it gets a URL of the bytes; else their key in the store.
        timeout_seconds: for one request, from its first to its last byte.
        ca_file: further authorities to trust.
        call_url: where it may say that a job ended, or None.
        usage_owner: who keeps the books of pages, as the settings say: drivefeed or backend.
    """

    name: str
    url: str
    credential: Credential | None
    by_url: bool = True
    timeout_seconds: float = 30.0
    ca_file: str | None = None
    call_url: str | None = None
    usage_owner: str = "drivefeed"


def is_usable(url: str) -> bool:
    """Whether a URL can stand before ``/v1``."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
