"""What changed between two looks at the files, in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from drivefeed.catalog.progress import Standing
from drivefeed.cli.words import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from drivefeed.catalog.listing import ListedFile

_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that happened to a file.

    Attributes:
        path: the file's path, as it is now.
        words: what happened.
        standing: where the file stands now; None where it is gone.
    """

    path: str
    words: str
    standing: Standing | None


class Happenings:
    """Remembers the last look, and says what is different."""

    def __init__(self) -> None:
        self._known: dict[_Key, ListedFile] | None = None
        self._gone: set[_Key] = set()

    def look(self, files: Iterable[ListedFile]) -> list[Happening]:
        """Take all files as they are, and return what happened since the last look.

        The first look says nothing but what already has an outcome that a person has to know.
        """
        now = {(one.connection_id, one.item_id): one for one in files}
        before = self._known
        self._known = now
        if before is None:
            return [Happening(one.path, _failed(one), Standing.FAILED) for one in _failures(now)]
        found = [one for key in now for one in self._changed(before.get(key), now[key])]
        for key in before.keys() - now.keys():
            words = "deleted: hidden from search" if before[key].live else "deleted"
            found.append(Happening(before[key].path, words, None))
            self._gone.add(key)
        return found

    def _changed(self, old: ListedFile | None, new: ListedFile) -> Iterator[Happening]:
        standing = Standing(new.standing)
        key = (new.connection_id, new.item_id)
        if old is None:
            # What is new and not at an end yet will speak for itself when it is.
            if key in self._gone:
                self._gone.discard(key)
                words = "is back: searchable" if new.live else "is back"
                yield Happening(new.path, words, standing)
            elif standing not in {Standing.IN_PROGRESS, Standing.STALE}:
                yield Happening(new.path, _stands(new, None), standing)
            return
        if old.path != new.path:
            yield Happening(new.path, _renamed(old.path, new.path), standing)
        version = (new.import_id, new.round)
        if standing is Standing.STALE and Standing(old.standing) is not Standing.STALE:
            yield Happening(new.path, "changed: a new version is on its way", standing)
        elif (old.standing, old.why, old.import_id, old.round) != (new.standing, new.why, *version):
            words = _stands(new, old)
            if words:
                yield Happening(new.path, words, standing)


def _failures(files: dict[_Key, ListedFile]) -> Iterator[ListedFile]:
    return (one for one in files.values() if one.standing == Standing.FAILED)


def _failed(one: ListedFile) -> str:
    return f"failed: {one.why}"


def _stands(new: ListedFile, old: ListedFile | None) -> str:
    match Standing(new.standing):
        case Standing.SEARCHABLE:
            chunks = f" ({count_of(new.chunks, 'chunk')})" if new.chunks is not None else ""
            # The step between may be over before anybody looks, so it is not asked for.
            again = old is not None and old.live
            return f"{'the new version is' if again else 'became'} searchable{chunks}"
        case Standing.FAILED:
            return _failed(new)
        case Standing.SKIPPED | Standing.HELD as standing:
            return f"{standing.value}: {new.why}"
        case _:
            # Steps on the way are told by the stages, except the first one of another try.
            tried = old is not None and Standing(old.standing) in {Standing.FAILED, Standing.HELD}
            return "is tried again" if tried else ""


def _renamed(old: str, new: str) -> str:
    before, _, old_name = old.rpartition("/")
    after, _, new_name = new.rpartition("/")
    if before == after:
        return f"renamed, was '{old_name}'"
    if old_name == new_name:
        return f"moved, was in '{before or '/'}'"
    return f"moved and renamed, was '{old}'"
