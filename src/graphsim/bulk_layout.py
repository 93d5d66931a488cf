"""A million files that nobody stores: ids, names, places, bytes and hashes computed from a number.

Ordinal 1 is the root, then come the folders, then the files. The first folders are below the root,
the others below those; files are spread evenly. A file's text has its own number at a fixed place,
so that its quickXorHash, which is linear, is that of a pattern with seven digits exchanged.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

from graphsim.items import Item, Kind, Profile, item_id
from graphsim.quickxor import quickxor

_WORDS = [
    "harvest",
    "ledger",
    "orchard",
    "copper",
    "river",
    "window",
    "lantern",
    "granite",
    "meadow",
    "signal",
    "anchor",
    "velvet",
    "timber",
    "compass",
    "saddle",
    "thunder",
    "garden",
    "mirror",
    "bridge",
    "kettle",
]
_VARIANTS = 16
_HEAD = b"Document "
_DIGITS = 7
_WIDTH = 160
_SHIFT = 11
MOST_FILES = 10**_DIGITS


class BulkLayout:
    """How a generated drive looks before anything has changed in it.

    Args:
        profile: The kind of drive.
        drive: The drive's id.
        files: How many files, at most ten million.
        folders: How many folders.
        created: The time of everything, in epoch seconds.

    Raises:
        ValueError: There is no folder for the files, or there are too many files.
    """

    def __init__(
        self, profile: Profile, drive: str, files: int, folders: int, created: float
    ) -> None:
        if not 0 < files < MOST_FILES or folders < 1:
            raise ValueError(
                f"A bulk drive has 1 to {MOST_FILES - 1} files in at least one folder."
            )
        self._profile = profile
        self._drive = drive
        self.files, self.folders, self.created = files, folders, created
        self.per_folder = -(-files // folders)
        self.tops = min(folders, 50)
        self.root_id = item_id(profile, drive, 1)
        self.last = 1 + folders + files
        """The highest ordinal."""
        digest = hashlib.sha256(f"bulk:{drive}".encode()).digest()[:15]
        self._tail = base64.b32encode(digest).decode()
        self._bodies = [_pattern(variant) for variant in range(_VARIANTS)]
        self._sizes = [len(body) for body in self._bodies]
        self._states = [_state(body) for body in self._bodies]
        self._digits = [
            [_rotated(0x30 + digit, place) ^ _rotated(0x30, place) for digit in range(10)]
            for place in range(len(_HEAD), len(_HEAD) + _DIGITS)
        ]
        self.folder_size = lru_cache(maxsize=None)(self._folder_size)
        self.folder = lru_cache(maxsize=None)(self._folder)

    def id_of(self, ordinal: int) -> str:
        """Return the id of an ordinal; it says which one it is."""
        if ordinal == 1:
            return self.root_id
        if self._profile is Profile.PERSONAL:
            return item_id(self._profile, self._drive, ordinal)
        return f"01{base64.b32encode(ordinal.to_bytes(5, 'big')).decode()}{self._tail}"

    def ordinal_of(self, identifier: str) -> int | None:
        """Return the ordinal of an id; null for one of another drive or of a later item."""
        if self._profile is Profile.PERSONAL:
            drive, _, number = identifier.partition("!")
            ordinal = int(number) - 100 if number.isdecimal() else 0
            own = drive == self._drive.upper()
        else:
            own = len(identifier) == 34 and identifier.endswith(self._tail)  # noqa: PLR2004 - ours
            try:
                ordinal = int.from_bytes(base64.b32decode(identifier[2:10]), "big") if own else 0
            except ValueError:
                return None
        return ordinal if own and 1 < ordinal <= self.last else None

    def item(self, ordinal: int) -> Item:
        """Return the first state of a folder or a file."""
        if ordinal <= self.folders + 1:
            return self.folder(ordinal)
        number = ordinal - self.folders - 2
        return Item(
            id=self.id_of(ordinal), parent_id=self.folder(2 + number // self.per_folder).id,
            name=f"document {number:07}.txt", kind=Kind.FILE, ordinal=ordinal,
            created=self.created, modified=self.created, changed_at=self.created, seq=1,
            size=self._sizes[number % _VARIANTS], quickxor=self.hash_of(number),
        )  # fmt: skip

    def _folder(self, ordinal: int) -> Item:
        number = ordinal - 2
        above = self.root_id if number < self.tops else self.id_of(2 + number % self.tops)
        return Item(
            id=self.id_of(ordinal), parent_id=above, name=f"folder {number:05}",
            kind=Kind.FOLDER, ordinal=ordinal, created=self.created, modified=self.created,
            changed_at=self.created, seq=1,
        )  # fmt: skip

    def body(self, ordinal: int) -> bytes:
        """Return the bytes of a file."""
        number = ordinal - self.folders - 2
        pattern = self._bodies[number % _VARIANTS]
        return b"%s%07d%s" % (_HEAD, number, pattern[len(_HEAD) + _DIGITS :])

    def hash_of(self, number: int) -> str:
        """Return the quickXorHash of the ``number``-th file, from 0."""
        state = self._states[number % _VARIANTS]
        for place in range(_DIGITS - 1, -1, -1):
            number, digit = divmod(number, 10)
            state ^= self._digits[place][digit]
            if not number:
                break
        return base64.b64encode(state.to_bytes(_WIDTH // 8, "little")).decode()

    def child_ordinals(self, ordinal: int) -> list[range]:
        """Return the ordinals of what is directly below a folder."""
        if ordinal == 1:
            return [range(2, 2 + self.tops)]
        number = ordinal - 2
        below = range(2 + number + self.tops, 2 + self.folders, self.tops)
        first = self.folders + 2 + number * self.per_folder
        last = min(first + self.per_folder, self.last + 1)
        files = range(min(first, last), last)
        return [below, files] if number < self.tops else [files]

    def _folder_size(self, ordinal: int) -> int:
        """Return the bytes of all files below a folder."""
        total = 0
        for below in self.child_ordinals(ordinal):
            if below and below[0] > self.folders + 1:
                total += sum(self._sizes[(one - self.folders - 2) % _VARIANTS] for one in below)
            else:
                total += sum(self.folder_size(one) for one in below)
        return total


def _pattern(variant: int) -> bytes:
    """Return the text of a variant, with zeros where a file's number goes."""
    words = (
        _WORDS[(variant * 7 + at * (variant + 3)) % len(_WORDS)] for at in range(20 + 8 * variant)
    )
    return b"%s%s\n%s.\n" % (_HEAD, b"0" * _DIGITS, " ".join(words).encode())


def _state(body: bytes) -> int:
    return int.from_bytes(base64.b64decode(quickxor(body)), "little")


def _rotated(byte: int, place: int) -> int:
    """Return what a byte at a place adds to the register of quickXorHash."""
    shifted = byte << (place * _SHIFT % _WIDTH)
    return (shifted & ((1 << _WIDTH) - 1)) ^ (shifted >> _WIDTH)
