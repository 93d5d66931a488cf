"""Drives: what one is to the HTTP side, and the drive that lives in memory."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

import msgspec

from graphsim.bodies import Body, BytesBody, hash_body
from graphsim.errors import not_found
from graphsim.items import Item, Kind, Profile, drive_id
from graphsim.rounds import Rounds
from graphsim.tree import Tree

if TYPE_CHECKING:
    from graphsim.clock import Clock
    from graphsim.estate import Site
    from graphsim.seals import Seals
    from graphsim.tenancy import Person


class Quirks(msgspec.Struct):
    """Behaviours on which reports disagree; each drive may be set to either side."""

    descendant_tombstones: bool = True
    """Report the tombstones of what was below a removed folder."""
    tombstone_fields: str = "profile"
    """``profile``: the documented fields of the drive type; ``id_only``: the id alone."""
    link_form: str = "query"
    """``query``: ``root/delta?token=``; ``function``: ``drives('d')/…/delta(token='')``."""
    scoped_delta: str = "work"
    """Delta below the root: ``work``, ``not_supported`` (501) or ``not_found`` (404)."""
    restore: str = "same"
    """What comes back to its old place with its old bytes gets the ``same`` id or a ``new`` one."""
    cutoff: bool = False
    """The drive was removed by its owner: every call answers 400, as reported by clients."""
    locked: bool = False
    """Its site is locked or archived: every call answers 423 ``notAllowed``."""


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
        self.epoch = 1
        self.tree = tree or Tree(profile, identifier, clock)
        self.rounds = Rounds(
            self.tree,
            seals,
            drive=identifier,
            profile=profile,
            epoch=lambda: self.epoch,
            descendant_tombstones=lambda: self.quirks.descendant_tombstones,
        )

    @property
    def tenant_id(self) -> str:
        """The tenant of its site; empty for a personal drive, which graphsim opens to any app."""
        return self.site.tenant_id if self.site else ""

    def expire_tokens(self) -> None:
        """Make every delta token given so far answer 410."""
        self.epoch += 1

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


class MemoryDrive(Drive):
    """A drive whose tree is built and changed by calls; used by tests and the admin API.

    All methods that change something return the item's new state, and raise ``KeyError`` for an
    id that is unknown or deleted.
    """

    def __init__(
        self, name: str, profile: Profile, seals: Seals, clock: Clock, seed: str | None = None
    ) -> None:
        identifier = drive_id(profile, f"memory:{seed or name}")
        super().__init__(name, profile, identifier, seals=seals, clock=clock)
        self._bodies: dict[str, Body] = {}
        self._unhashed: set[str] = set()

    def create_folder(self, name: str, parent: str | None = None) -> Item:
        """Create a folder below ``parent`` (an id; the root by default)."""
        return self._create(name, parent, Kind.FOLDER)

    def create_package(self, name: str, parent: str | None = None) -> Item:
        """Create a OneNote notebook, which is neither file nor folder."""
        facets = {"package": {"type": "oneNote"}}
        return self._create(name, parent, Kind.PACKAGE, facets=facets)

    def create_file(
        self, name: str, body: bytes | Body, parent: str | None = None, **facets: Any
    ) -> Item:
        """Create a file; ``facets`` are laid over the rendered item (``malware={}`` …)."""
        content = BytesBody(body) if isinstance(body, bytes) else body
        item = self._create(name, parent, Kind.FILE, size=content.size, facets=facets)
        self._bodies[item.id] = content
        return self._hashed(item, content)

    def replace(self, identifier: str, body: bytes | Body) -> Item:
        """Give a file new content."""
        item = self._live(identifier)
        content = BytesBody(body) if isinstance(body, bytes) else body
        self._bodies[identifier] = content
        changed = self._changed(
            item, size=content.size, ctag_version=item.ctag_version + 1, quickxor=None
        )
        return self._hashed(changed, content)

    def rename(self, identifier: str, name: str) -> Item:
        """Give an item another name."""
        return self._changed(self._live(identifier), name=name)

    def move(self, identifier: str, parent: str | None, name: str | None = None) -> Item:
        """Put an item below another folder, with another name if given."""
        item = self._live(identifier)
        target = self._live(parent or self.tree.root_id)
        if identifier in {above.id for above in self.tree.ancestors(target)} | {target.id}:
            raise ValueError(f"{item.name} can't be moved below itself.")
        return self._changed(item, parent_id=target.id, name=name or item.name)

    def touch(self, identifier: str, *, content: bool = False) -> Item:
        """Change the eTag (and with ``content`` the cTag) while the bytes stay the same."""
        item = self._live(identifier)
        return self._changed(item, ctag_version=item.ctag_version + content)

    def annotate(self, identifier: str, **facets: Any) -> Item:
        """Lay properties over the rendered item: ``size=7``, ``malware={}``, ``file=None``."""
        item = self._live(identifier)
        return self._changed(item, facets={**item.facets, **facets})

    def delete(self, identifier: str) -> Item:
        """Remove an item and all below it."""
        self._live(identifier)
        return self.tree.delete(identifier)[-1]

    def restore(self, identifier: str) -> Item:
        """Bring a removed item back with all that went with it, under the same ids."""
        restored = self.tree.restore(identifier)
        if not restored:
            raise KeyError(f"Nothing to restore under the id {identifier}.")
        return restored[0]

    async def open(self, item: Item) -> tuple[Item, Body]:
        """Open a file's content; see :meth:`Drive.open`."""
        if item.id not in self._bodies:
            raise not_found()
        if item.id in self._unhashed:
            await self.settle()
        return self.tree.items[item.id], self._bodies[item.id]

    async def refresh(self, *, at_once: bool = False) -> None:  # noqa: ARG002 - nothing to pause
        """Compute the hashes of large bodies that were added since the last call."""
        await self.settle()

    async def settle(self) -> None:
        """Hash large bodies off the loop; the hash appears without being a change."""
        for identifier in list(self._unhashed):
            body = self._bodies[identifier]
            value = await asyncio.to_thread(hash_body, body)
            if self._bodies[identifier] is body:
                item = self.tree.items[identifier]
                self.tree.annotate(msgspec.structs.replace(item, quickxor=value))
                self._unhashed.discard(identifier)

    def _create(self, name: str, parent: str | None, kind: Kind, **fields: Any) -> Item:
        above = self._live(parent or self.tree.root_id)
        identifier, ordinal = self.tree.new_id()
        now = self.clock.now()
        return self.tree.put(
            Item(
                id=identifier, parent_id=above.id, name=name, kind=kind, ordinal=ordinal,
                created=now, modified=now, **fields,
            )
        )  # fmt: skip

    def _changed(self, item: Item, **fields: Any) -> Item:
        version = item.etag_version + 1
        now = self.clock.now()
        return self.tree.put(
            msgspec.structs.replace(item, etag_version=version, modified=now, **fields)
        )

    def _hashed(self, item: Item, body: Body) -> Item:
        """Small bodies are hashed here and now, large ones by :meth:`settle`."""
        if body.size > 1 << 20:
            self._unhashed.add(item.id)
            return item
        return self.tree.annotate(msgspec.structs.replace(item, quickxor=hash_body(body)))

    def _live(self, identifier: str) -> Item:
        item = self.tree.live(identifier)
        if item is None:
            raise KeyError(f"There is no item {identifier} in the drive {self.name}.")
        return item


def new_secret() -> bytes:
    """Return a fresh signing secret."""
    return secrets.token_bytes(32)
