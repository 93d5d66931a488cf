"""The drive that lives in memory: built and changed by calls, in tests and over the admin port."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

import msgspec

from graphsim.bodies import Body, BytesBody, hash_body, other_hashes
from graphsim.drive import Drive
from graphsim.errors import not_found
from graphsim.items import Item, Kind, Profile, drive_id

if TYPE_CHECKING:
    from graphsim.clock import Clock
    from graphsim.seals import Seals
    from graphsim.tree import Tree


class MemoryDrive(Drive):
    """A drive whose tree is built and changed by calls; used by tests and the admin API.

    All methods that change something return the item's new state, and raise ``KeyError`` for an
    id that is unknown or deleted.
    """

    def __init__(
        self,
        name: str,
        profile: Profile,
        seals: Seals,
        clock: Clock,
        seed: str | None = None,
        *,
        identifier: str | None = None,
        tree: Tree | None = None,
    ) -> None:
        own = identifier or drive_id(profile, f"memory:{seed or name}")
        super().__init__(name, profile, own, seals=seals, clock=clock, tree=tree)
        self._bodies: dict[str, Body] = {}
        self._unhashed: set[str] = set()

    def create_folder(self, name: str, parent: str | None = None) -> Item:
        """Create a folder below ``parent`` (an id; the root by default)."""
        return self._create(name, parent, Kind.FOLDER)

    def create_package(self, name: str, parent: str | None = None) -> Item:
        """Create a OneNote notebook, which is neither file nor folder."""
        facets = {"package": {"type": "oneNote"}}
        return self._create(name, parent, Kind.PACKAGE, facets=facets)

    def create_notebook(
        self, name: str, parent: str | None = None, sections: tuple[str, ...] = ("Section",)
    ) -> Item:
        """Create a OneNote notebook with its sections, which delta lists as files without hash."""
        notebook = self.create_package(name, parent)
        for section in sections:
            self.create_file(f"{section}.one", section.encode(), notebook.id)
        self.create_file("Open Notebook.onetoc2", name.encode(), notebook.id)
        return notebook

    def create_shortcut(
        self, name: str, drive: Drive, item: Item, parent: str | None = None
    ) -> Item:
        """Create a shortcut to an item of another drive."""
        facet = {"folder": {"childCount": 0}} if item.is_container else {"file": {}}
        remote = {
            "id": item.id, "name": item.name, "size": drive.tree.total_size(item), **facet,
            "parentReference": {"driveId": drive.id, "driveType": drive.profile.value},
        }  # fmt: skip
        return self._create(name, parent, Kind.SHORTCUT, facets={"remoteItem": remote})

    def create_other(self, name: str, parent: str | None = None, **facets: Any) -> Item:
        """Create what is neither file nor folder: ``bundle={"childCount": 2}``, or no facet."""
        return self._create(name, parent, Kind.OTHER, facets=facets)

    def create_vault(self, parent: str | None = None) -> Item:
        """Create a Personal Vault: a folder whose listing is refused with 400."""
        facets = {"specialFolder": {"name": "vault"}}
        return self._create("Personal Vault", parent, Kind.FOLDER, facets=facets)

    def create_file(
        self,
        name: str,
        body: bytes | Body,
        parent: str | None = None,
        *,
        identifier: str | None = None,
        hashed: bool = True,
        **facets: Any,
    ) -> Item:
        """Create a file; ``facets`` are laid over the rendered item (``malware={}`` …).

        Args:
            name: Its name.
            body: Its content.
            parent: The id of its folder; the root by default.
            identifier: Its id, in place of one in the drive's own form.
            hashed: List its hashes; without them a huge synthetic body costs nothing.
            facets: Properties laid over what is shown.
        """
        content = BytesBody(body) if isinstance(body, bytes) else body
        item = self._create(
            name, parent, Kind.FILE, identifier=identifier, size=content.size, facets=facets
        )
        self._bodies[item.id] = content
        return self._hashed(item, content) if hashed else item

    def replace(self, identifier: str, body: bytes | Body) -> Item:
        """Give a file new content."""
        item = self._live(identifier)
        content = BytesBody(body) if isinstance(body, bytes) else body
        self._bodies[identifier] = content
        changed = self._changed(
            item, size=content.size, ctag_version=item.ctag_version + 1,
            quickxor=None, other_hashes={},
        )  # fmt: skip
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

    def restore(self, identifier: str, *, new_ids: bool | None = None) -> Item:
        """Bring a removed item back with all that went with it.

        Args:
            identifier: Its id.
            new_ids: Give all of them new ids; by default as the quirk ``restore`` says.
        """
        if new_ids is None:
            new_ids = self.quirks.restore == "new"
        if not new_ids:
            restored = self.tree.restore(identifier)
            if not restored:
                raise KeyError(f"Nothing to restore under the id {identifier}.")
            return restored[0]
        group = self.tree.removed_with(identifier)
        if not group:
            raise KeyError(f"Nothing to restore under the id {identifier}.")
        names: dict[str | None, str] = {}
        made: list[Item] = []
        for item in group:
            names[item.id], ordinal = self.tree.new_id()
            again = msgspec.structs.replace(
                self.tree.revived(item), id=names[item.id], ordinal=ordinal,
                parent_id=names.get(item.parent_id, item.parent_id),
            )  # fmt: skip
            made.append(self.tree.put(again))
            if item.id in self._bodies:
                self._bodies[names[item.id]] = self._bodies[item.id]
        return made[0]

    def migrate(self, root_id: str | None = None) -> str:
        """Give the root another id, as the move of personal accounts to another backend did.

        Delta tokens given before answer 410. Other items keep their ids.

        Returns:
            The new id of the root.
        """
        given = root_id or f"{self.id.upper()}!s{secrets.token_hex(16)}"
        self.tree.rename_root(given)
        self.expire_tokens()
        self.rounds.forget_open_rounds()
        return given

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
            others = await asyncio.to_thread(self._other_hashes, body)
            if self._bodies[identifier] is body:
                item = self.tree.items[identifier]
                self.tree.annotate(
                    msgspec.structs.replace(item, quickxor=value, other_hashes=others)
                )
                self._unhashed.discard(identifier)

    def _create(
        self,
        name: str,
        parent: str | None,
        kind: Kind,
        *,
        identifier: str | None = None,
        **fields: Any,
    ) -> Item:
        above = self._live(parent or self.tree.root_id)
        usual, ordinal = self.tree.new_id()
        now = self.clock.now()
        return self.tree.put(
            Item(
                id=identifier or usual, parent_id=above.id, name=name, kind=kind, ordinal=ordinal,
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
        value, others = hash_body(body), self._other_hashes(body)
        return self.tree.annotate(
            msgspec.structs.replace(item, quickxor=value, other_hashes=others)
        )

    def _other_hashes(self, body: Body) -> dict[str, str]:
        return other_hashes(body) if self.profile is Profile.PERSONAL else {}

    def _live(self, identifier: str) -> Item:
        item = self.tree.live(identifier)
        if item is None:
            raise KeyError(f"There is no item {identifier} in the drive {self.name}.")
        return item


def new_secret() -> bytes:
    """Return a fresh signing secret."""
    return secrets.token_bytes(32)
