"""What a scratch file holds: items as a listing saw them, and those that are in doubt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seen:
    """An item as a listing saw it."""

    item_id: str
    parent_id: str | None
    name: str
    is_file: bool


@dataclass(frozen=True, slots=True)
class Suspect:
    """An item about which listing and tree disagree.

    Attributes:
        parent_id: where it lies: as listed, or as the tree says where it was not listed.
        doubt: ``unseen``, ``unknown`` or ``differs``.
        state: ``open``, or what its own answer showed: ``same``, ``gone``, ``differs``,
            ``unknown``, ``unclear``.
        asked: how often it was asked for without an answer.
        told: whether a finding tells of it already.
    """

    item_id: str
    parent_id: str | None
    doubt: str
    state: str = "open"
    asked: int = 0
    told: bool = False
