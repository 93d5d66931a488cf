"""What items lie in, once the folders above them were loaded. No SQL."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import ItemKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.domain.delta import TreeItem


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The folders between a connected folder and an item, as a policy looks at them.

    Attributes:
        names: of the folders, outermost first.
        reason: why nothing that lies in them is admitted, whatever it is.
    """

    names: tuple[str, ...]
    reason: Reason | None

    @classmethod
    def of(cls, below: tuple[TreeItem, ...]) -> Surroundings:
        """Look at folders, outermost first."""
        kinds = [folder.kind for folder in below]
        reason = None
        if ItemKind.PACKAGE in kinds:
            reason = Reason.PACKAGE
        elif ItemKind.VAULT in kinds:
            reason = Reason.VAULT
        return cls(tuple(folder.name for folder in below), reason)


@dataclass(frozen=True, slots=True)
class Lineage:
    """The folders an item lies in, outermost first, without the item itself.

    Attributes:
        complete: whether they reach the drive's root.
        alive: whether none of them is deleted.
        seen: whether all of them were seen in the generation that was asked for.
    """

    folders: tuple[TreeItem, ...]
    complete: bool
    alive: bool
    seen: bool
    _surroundings: dict[str, Surroundings | None] = field(
        default_factory=dict, compare=False, repr=False
    )

    def below(self, root_id: str) -> tuple[TreeItem, ...] | None:
        """The folders between a connected folder and the item, or None if it lies elsewhere."""
        for position, folder in enumerate(self.folders):
            if folder.item_id == root_id:
                return self.folders[position + 1 :]
        return None

    def surroundings(self, root_id: str) -> Surroundings | None:
        """What lies between a connected folder and the item, or None if it lies elsewhere.

        Worked out once for all items of one folder, which share their lineage.
        """
        if root_id not in self._surroundings:
            below = self.below(root_id)
            self._surroundings[root_id] = None if below is None else Surroundings.of(below)
        return self._surroundings[root_id]


class Climbed:
    """What was found on the way up; items of one folder lie in the same folders."""

    def __init__(self, folders: Mapping[str, TreeItem], generation: int | None) -> None:
        self._folders = folders
        self._generation = generation
        self._below: dict[str, Lineage] = {}

    def lineage(self, one: TreeItem) -> Lineage:
        """Return what an item lies in."""
        if one.kind is not ItemKind.FILE or one.parent_id is None:
            # It may lie in a circle, or be the root.
            return _lineage(one, self._folders, self._generation)
        found = self._below.get(one.parent_id)
        if found is None:
            found = _lineage(one, self._folders, self._generation)
            self._below[one.parent_id] = found
        return found


def _lineage(one: TreeItem, folders: Mapping[str, TreeItem], generation: int | None) -> Lineage:
    chain: list[TreeItem] = []
    passed = {one.item_id}
    current = one
    while current.parent_id and current.parent_id in folders:
        current = folders[current.parent_id]
        if current.item_id in passed:
            break
        passed.add(current.item_id)
        chain.append(current)
    chain.reverse()
    complete = bool(chain) and chain[0].kind is ItemKind.ROOT
    return Lineage(
        folders=tuple(chain),
        complete=complete or one.kind is ItemKind.ROOT,
        alive=not any(folder.deleted for folder in chain),
        seen=generation is None or all(folder.generation == generation for folder in chain),
    )
