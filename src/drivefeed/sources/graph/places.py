"""What a pasted address can name, in the words of Graph; see :mod:`.addresses` for the reading.

Hosts of SharePoint by cloud: Microsoft's "Microsoft 365 URLs and IP address ranges", one page for
each cloud.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable

CONSUMERS = "consumers"
"""What stands for the cloud where an address is one of the personal OneDrive."""
LOOK_ALIKE = "look-alike"
"""What stands for the cloud where a host ends with ``.invalid``, which RFC 2606 keeps free: such
addresses come from a look-alike of Microsoft Graph, behind whichever account reads it."""

_CLOUD_OF = {
    ".sharepoint.com": "global",
    ".sharepoint.us": "us_l4",
    ".sharepoint-mil.us": "us_l5",
    ".sharepoint.cn": "china",
    ".sharepoint.invalid": LOOK_ALIKE,
}
CONSUMER_HOSTS = frozenset(
    {
        "onedrive.live.com",
        "www.onedrive.live.com",
        "skydrive.live.com",
        "onedrive.com",
        "www.onedrive.com",
        "1drv.ms",
        "www.1drv.ms",
        "1drv.com",
        "d.docs.live.net",
    }
)


class NotAnAddress(NeedsAttention):
    """What was pasted names no folder of OneDrive or SharePoint; the sentence says what it is."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, reason=Reason.MISCONFIGURED)


@dataclass(frozen=True, slots=True)
class SitePath:
    """A place below a SharePoint site, by its path: a site, a library, a folder or a file.

    Attributes:
        host: lower-case; empty for the tenant's own, where only a path was given.
        path: decoded names, from the host on: ``("sites", "Lab", "Shared Documents", "2026")``.
        cloud: a key of the account module's ``CLOUDS``; None where the host does not tell.
    """

    host: str
    path: tuple[str, ...]
    cloud: str | None

    @property
    def site(self) -> tuple[str, ...]:
        """The names that lead to the site collection; empty for the root site."""
        return self.path[:2] if is_managed(self.path) else ()

    @property
    def is_personal(self) -> bool:
        """Whether it lies in somebody's OneDrive."""
        return bool(self.path) and self.path[0].casefold() == "personal"


@dataclass(frozen=True, slots=True)
class SharingLink:
    """A link that only Microsoft can resolve; Graph takes it as it is, encoded as a share id.

    Attributes:
        cloud: as of :class:`SitePath`, or :data:`CONSUMERS`.
    """

    url: str
    host: str
    cloud: str | None


@dataclass(frozen=True, slots=True)
class DrivePath:
    """A place in a drive that is named by its id.

    Attributes:
        item_id: where ``path`` begins; None for the drive's root.
        cloud: :data:`CONSUMERS` where the address was one of the personal OneDrive.
    """

    drive_id: str
    item_id: str | None = None
    path: tuple[str, ...] = ()
    cloud: str | None = None


@dataclass(frozen=True, slots=True)
class OwnDrive:
    """A place in the OneDrive of the person who signed in."""

    path: tuple[str, ...] = ()
    cloud: str | None = None


@dataclass(frozen=True, slots=True)
class UserDrive:
    """A place in the OneDrive of a person named by id or user principal name."""

    user: str
    path: tuple[str, ...] = ()
    cloud: str | None = None


Address = SitePath | SharingLink | DrivePath | OwnDrive | UserDrive

_MANAGED = frozenset({"sites", "teams", "personal", "portals", "contentstorage"})
"""First names of a path that are followed by a site's name."""


def is_managed(path: tuple[str, ...]) -> bool:
    """Whether a path begins with one of SharePoint Online's managed paths and a site's name."""
    return len(path) > 1 and path[0].casefold() in _MANAGED


def cloud_of(host: str) -> str | None:
    """Return the cloud that a host of SharePoint Online belongs to, or None for another host."""
    for ending, cloud in _CLOUD_OF.items():
        if host.endswith(ending) and host != ending[1:]:
            return cloud
    return None


def names_of(path: str) -> tuple[str, ...]:
    """Split a decoded path into its names."""
    return walked(path.split("/"))


def walked(steps: Iterable[str]) -> tuple[str, ...]:
    """Follow ``.`` and ``..`` as browsers do; above the beginning there is nothing.

    No file or folder of OneDrive or SharePoint is called so, and Graph does not follow them.
    """
    names: list[str] = []
    for step in steps:
        if step == "..":
            del names[-1:]
        elif step not in {"", "."}:
            names.append(step)
    return tuple(names)
