"""One thing that differs: in words for people, and located for whoever mends it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """What differs, and where it is.

    Attributes:
        words: a line for people.
        org: the organization's name, for its books of usage.
        key: the object's key in the store.
        expected: how many points a round should have.
        points: ids of points in the index, as far as they are known; of many, the first.
        item_id, drive_id, path: the file at the source; the path below its connection.
        connection_id: the connection that has or lacks it.
        asks: whether a person is asked about it, so that nobody else may decide.
    """

    words: str
    org: str | None = None
    document_id: str | None = None
    import_id: str | None = None
    round: int | None = None
    key: str | None = None
    expected: int | None = None
    points: tuple[str, ...] = ()
    item_id: str | None = None
    drive_id: str | None = None
    path: str | None = None
    connection_id: str | None = None
    asks: bool = False

    def __str__(self) -> str:
        return self.words

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values; what does not belong to it is left out."""
        known = {name: value for name, value in asdict(self).items() if value}
        return known | ({"points": list(self.points)} if self.points else {})
