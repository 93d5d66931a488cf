"""The ingestion backends of this installation, by the names that policies call them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.catalog.ledger import BACKENDS, OURS
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.policy_options import EMBEDDED
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from drivefeed.ports import IngestionBackend


class Backends:
    """Our own backend (but where only others are looked at), and those of the settings.

    Args:
        keeping_books: names of those that count usage themselves.
    """

    def __init__(
        self,
        embedded: IngestionBackend | None,
        others: Mapping[str, IngestionBackend] | None = None,
        *,
        keeping_books: Iterable[str] = (),
    ) -> None:
        self._known = dict(others or {})
        if embedded is not None:
            self._known[EMBEDDED] = embedded
        self._keeping_books = frozenset(keeping_books)

    def usage_owner(self, name: str | None) -> str:
        """Return who keeps the books of what is imported by a backend."""
        return BACKENDS if name in self._keeping_books else OURS

    def named(self, name: str | None) -> IngestionBackend:
        """Return a backend; None is what was submitted before there were names: our own.

        Raises:
            NeedsAttention: the settings have none of that name.
        """
        found = self._known.get(name or EMBEDDED)
        if found is None:
            raise NeedsAttention(
                f"The ingestion backend '{name}' is not in the settings. Write [backends.{name}] "
                "there, or choose another one in the policy of the connection.",
                reason=Reason.MISCONFIGURED,
            )
        return found

    @property
    def keep_books(self) -> bool:
        """Whether any of them counts usage itself."""
        return bool(self._keeping_books)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, our own backend's among them."""
        return tuple(self._known)

    def down(self) -> dict[str, str]:
        """Return those that are considered down, by ``backend 'NAME'``, with the last words."""
        return {
            f"backend '{name}'": one.trouble for name, one in self._known.items() if one.trouble
        }

    async def look_again(self) -> None:
        """See whether those that are down and that no file asks are well again."""
        for one in self._known.values():
            await one.look_again()

    async def aclose(self) -> None:
        """Release what all of them hold."""
        for one in self._known.values():
            await one.aclose()
