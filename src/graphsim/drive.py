"""What a drive is to the HTTP side, wherever its bytes are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphsim.quirks import Quirks
from graphsim.rounds import Rounds
from graphsim.tree import Tree

if TYPE_CHECKING:
    import msgspec

    from graphsim.bodies import Body
    from graphsim.clock import Clock
    from graphsim.estate import Site
    from graphsim.items import Item, Profile
    from graphsim.seals import Seals
    from graphsim.tenancy import Person


class Drive:
    """One drive: its tree, delta engine and quirks. Where the bytes are is the subclass's part.

    Args:
        name: Shown as the drive's name.
        profile: The kind of drive.
        identifier: The drive's id in Graph.
        seals: Makes delta tokens.
        clock: The time of changes.
        tree: The items; an empty tree with a root by default.
    """

    def __init__(
        self,
        name: str,
        profile: Profile,
        identifier: str,
        *,
        seals: Seals,
        clock: Clock,
        tree: Tree | None = None,
    ) -> None:
        self.name = name
        self.profile = profile
        self.id = identifier
        self.clock = clock
        self.quirks = Quirks()
        self.left_out: dict[str, str] = {}
        """What of a real folder is not part of the drive, by path, with the reason."""
        self.site: Site | None = None
        self.library = "Documents"
        """Its name in addresses below its site."""
        self.owner: Person | None = None
        self.readers: set[str] = set()
        """Ids of people it is shared with."""
        self.labels: dict[str, list[str]] = {}
        """Ids of sensitivity labels, by item id; no listing shows them."""
        self.protected: dict[str, str] = {}
        """Items that nobody can look into for their labels, with the error's code."""
        self.permissions: dict[str, list[dict[str, Any]]] = {}
        """Permissions of an item's own, by its id, in Graph's shape. It has no others, then."""
        self.untold: set[str] = set()
        """Items of whose permissions none applies to the caller, so that none is told."""
        self.epoch = 1
        self.downloaded: set[str] = set()
        """Ids of files whose bytes were asked for: that makes a missing hash appear."""
        self.tree = tree or Tree(profile, identifier, clock)
        self.rounds = Rounds(
            self.tree,
            seals,
            drive=identifier,
            profile=profile,
            epoch=lambda: self.epoch,
            quirks=lambda: self.quirks,
        )

    @property
    def tenant_id(self) -> str:
        """The tenant of its site; empty for a personal drive, which graphsim opens to any app."""
        return self.site.tenant_id if self.site else ""

    def expire_tokens(self) -> None:
        """Make every delta token given so far answer 410."""
        self.epoch += 1

    def hide(self, identifier: str, seconds: float) -> None:
        """Let delta show an item's latest change only after so many seconds."""
        self.tree.lateness.hide(identifier, seconds)

    def set_permissions(self, identifier: str, permissions: list[dict[str, Any]]) -> None:
        """Give an item permissions of its own, or with none those of its folder again.

        Delta tells of the item, whose tags stay as they are: it is no other version.
        """
        self.permissions[identifier] = permissions
        self.tree.put(self.tree.items[identifier])

    def was_downloaded(self, item: Item) -> None:
        """Note that a file's bytes were asked for; its hash may appear by that."""
        if item.id in self.downloaded:
            return
        self.downloaded.add(item.id)
        if self.quirks.hashes == "after_download":
            self.tree.put(self.tree.items[item.id])

    def raw(self, item: Item, select: str | None) -> msgspec.Raw | None:  # noqa: ARG002 - see below
        """Return an item of a delta page as JSON, where the drive has a faster way to write it."""
        return None

    async def refresh(self, *, at_once: bool = False) -> None:
        """Bring the tree up to date with where the bytes are; ``at_once`` skips any pause."""

    async def check(self, item: Item) -> None:
        """Make sure that a file's content can be had, before a client is sent to it.

        Raises:
            GraphError: 404 when the bytes are gone, 403 when they can't be read.
        """

    async def open(self, item: Item) -> tuple[Item, Body]:
        """Open a file's content; return it with the item's state that it belongs to.

        Raises:
            GraphError: 404 when the bytes are gone, 403 when they can't be read.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release what the drive holds."""
