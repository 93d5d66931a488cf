"""The key ring: seals with the newest key, opens with any, and notices new keys."""

from __future__ import annotations

import base64
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import hide
from drivefeed.secrets.places import KeyFile
from drivefeed.secrets.sealing import Key, seal, unseal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from drivefeed.secrets.places import KeyPlace


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed value as a row keeps it."""

    value: bytes = field(repr=False)
    key_id: str


class KeyRing:
    """The keys of one place, loaded when first needed. May block; safe in threads.

    Args:
        place: where the keys are; asked again when it changed, and for a key not seen yet.
    """

    def __init__(self, place: KeyPlace) -> None:
        self.place = place
        self._keys: list[Key] = []
        self._stamp: Hashable = None
        self._lock = threading.Lock()

    @property
    def newest(self) -> Key:
        """The key that seals.

        Raises:
            NeedsAttention: there is none.
        """
        return self._current()[0]

    @property
    def key_ids(self) -> list[str]:
        """The ids of all keys, that of the newest first."""
        return [key.key_id for key in self._current()]

    @property
    def wants_first_key(self) -> bool:
        """Whether there is no key file, and a catalog without secrets would make it."""
        return (
            isinstance(self.place, KeyFile)
            and self.place.may_make
            and not os.path.lexists(self.place.path)
        )

    def make_first_key(self) -> bool:
        """Make the key file with one key, unless it is there; tell whether it was made.

        Only for a catalog in which nothing is sealed: see
        :func:`drivefeed.catalog.credentials.ensure_key`.
        """
        return isinstance(self.place, KeyFile) and self.place.make()

    def seal(self, plain: bytes, *, row_id: str) -> Sealed:
        """Seal a value for a row with the newest key.

        Raises:
            NeedsAttention: there is no key.
        """
        key = self.newest
        return Sealed(seal(key, plain, row_id=row_id), key.key_id)

    def unseal(self, sealed: Sealed, *, row_id: str) -> bytes:
        """Open a row's value with the key it names.

        Raises:
            NeedsAttention: that key is not here, or the value is not this row's, or damaged.
        """
        keys = {key.key_id: key for key in self._current()}
        if sealed.key_id not in keys:
            keys = {key.key_id: key for key in self._current(afresh=True)}
        key = keys.get(sealed.key_id)
        if key is None:
            raise NeedsAttention(
                f"A secret was sealed with key {sealed.key_id}, and {self.place.name} holds "
                f"{_listed(list(keys))}. Bring that key back as a second one; or, if it is lost, "
                "enter the secrets of the accounts again.",
                reason=Reason.SECRETS_LOCKED,
            )
        return unseal(key, sealed.value, row_id=row_id)

    def _current(self, *, afresh: bool = False) -> list[Key]:
        with self._lock:
            stamp = self.place.stamp()
            if not self._keys or afresh or stamp != self._stamp:
                self._keys = self.place.load()
                hide(*(base64.b64encode(key.secret).decode() for key in self._keys))
                self._stamp = self.place.stamp()
            return self._keys


def _listed(key_ids: list[str]) -> str:
    return f"only {', '.join(key_ids)}" if key_ids else "none"
