"""The source: drives, their changes, their content, and the notifications of changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from drivefeed.domain.budget import Lane
    from drivefeed.domain.remote import DeltaPage, DriveRef, RemoteDrive, RemoteItem


class Download(Protocol):
    """The content of one file while it streams."""

    size: int | None
    etag: str | None

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes in order, in pieces of at most 1 MiB.

        A cut connection or an expired download URL is resumed by range inside, a bounded number
        of times; the consumer sees one unbroken stream or an error.

        Raises:
            Transient: the stream could not be completed.
        """
        ...


class Source(Protocol):
    """A cloud drive service (Microsoft Graph or a look-alike)."""

    def at(self, lane: Lane) -> Source:
        """Return the same source for requests of another urgency, where requests are rationed."""
        ...

    async def delta(self, drive: DriveRef, link: str | None) -> DeltaPage:
        """Fetch one page of changes; ``link`` is a stored link, or None to enumerate everything.

        Raises:
            CursorExpired: the link is no longer valid.
            Throttled, Transient, PartDown, NeedsAttention: as their docstrings say.
        """
        ...

    async def item(self, drive: DriveRef, item_id: str) -> RemoteItem:
        """Fetch one item by id.

        Raises:
            NotFound: there is no such item (any more).
        """
        ...

    async def drive(self, drive: DriveRef) -> RemoteDrive:
        """Describe a drive and its root."""
        ...

    async def item_by_path(self, drive: DriveRef, path: str) -> RemoteItem:
        """Resolve a folder path relative to the drive's root, once, to an item.

        Raises:
            NotFound: there is nothing at that path.
        """
        ...

    async def is_labelled(self, drive: DriveRef, item_id: str) -> bool:
        """Tell whether a file has a sensitivity label, or is protected by one that is not shown.

        Raises:
            NotFound: the item is gone.
            NeedsAttention: it is not told to this account.
        """
        ...

    async def has_own_permissions(self, drive: DriveRef, item_id: str) -> bool:
        """Tell whether a file has other permissions than those that it inherits.

        Raises:
            NotFound: the item is gone.
            NeedsAttention: it is not told to this account.
        """
        ...

    def download(self, drive: DriveRef, item_id: str) -> AbstractAsyncContextManager[Download]:
        """Open the content of a file, from its first byte.

        Raises (on entering):
            NotFound: the item is gone.
            Permanent: it may not be downloaded (malware, forbidden).
        """
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


@dataclass(frozen=True, slots=True)
class SubscriptionWish:
    """What a source is asked to tell of, and where.

    Attributes:
        url: where changes are told; ``lifecycle_url``, where the subscription's own fate is.
        secret: the word that the source shows with each call; at most 128 characters.
        expires_at: until when.
    """

    url: str
    lifecycle_url: str
    secret: str = field(repr=False)
    expires_at: int


@dataclass(frozen=True, slots=True)
class Granted:
    """A subscription as the source granted it: its id there, and until when."""

    remote_id: str
    expires_at: int


class ChangeNotifications(Protocol):
    """A source that can say when something changed. What changed is always asked of ``delta``.

    All methods raise as :meth:`Source.delta` does.
    """

    async def subscribe(self, drive: DriveRef, wish: SubscriptionWish) -> Granted:
        """Ask to be told; the source calls ``wish.url`` before it answers."""
        ...

    async def renew(self, drive: DriveRef, remote_id: str, *, expires_at: int) -> Granted:
        """Prolong a subscription.

        Raises:
            NotFound: the source does not know it (any more).
        """
        ...

    async def unsubscribe(self, drive: DriveRef, remote_id: str) -> None:
        """End a subscription; one that is gone is ended."""
        ...

    async def subscribed(self, drive: DriveRef, address: str) -> list[str]:
        """Return the source's ids of the drive's subscriptions whose URL begins with an address."""
        ...
