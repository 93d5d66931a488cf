"""Office Open XML packages: parts by name, by relationship, and read as a stream of events.

Parts are inflated piece by piece into expat, so a part of any size costs constant memory, nesting
of any depth costs no recursion, and a document type declaration (the only way to entity bombs and
external entities) ends the reading.
"""

from __future__ import annotations

import errno
import lzma
import posixpath
import zipfile
import zlib
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import unquote
from xml.parsers import expat

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.model import Rejected

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Self

    from drivefeed.indexer.model import Limits

_PIECE: Final = 64 * 1024
_ENCRYPTED_FLAG: Final = 0x1
# What seeking to a place that a damaged directory names fails with; other errors are the disk's.
_BAD_OFFSETS: Final = (errno.EINVAL, errno.EOVERFLOW, None)
_MOST_MEMBERS: Final = 100_000

# Transitional and strict documents say the same with two sets of namespaces.
_PREFIXES: Final = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "http://schemas.openxmlformats.org/drawingml/2006/chart": "c",
    "http://purl.oclc.org/ooxml/drawingml/chart": "c",
    "http://schemas.openxmlformats.org/presentationml/2006/main": "p",
    "http://purl.oclc.org/ooxml/presentationml/main": "p",
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "s",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "s",
    "http://schemas.openxmlformats.org/officeDocument/2006/math": "m",
    "http://purl.oclc.org/ooxml/officeDocument/math": "m",
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships": "r",
    "http://purl.oclc.org/ooxml/officeDocument/relationships": "r",
    "http://schemas.openxmlformats.org/markup-compatibility/2006": "mc",
    "http://schemas.openxmlformats.org/package/2006/relationships": "rel",
    "http://schemas.openxmlformats.org/package/2006/content-types": "ct",
    "http://schemas.openxmlformats.org/officeDocument/2006/extended-properties": "ep",
    "http://purl.oclc.org/ooxml/officeDocument/extendedProperties": "ep",
    "http://purl.org/dc/elements/1.1/": "dc",
}
CONTENT_TYPES: Final = "[Content_Types].xml"


class Reader(Protocol):
    """Receives the events of one part, with names such as `w:p`."""

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begin an element."""

    def end(self, name: str) -> None:
        """End an element."""

    def data(self, text: str) -> None:
        """Take character data; one run of text may come in pieces."""


class Relationships:
    """The relationships of one part: targets by id and by kind, in document order."""

    def __init__(self, source: str) -> None:
        self._folder = posixpath.dirname(source)
        self._rows: list[tuple[str, str, str]] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Take one relationship; those that point out of the package are left out."""
        if name != "rel:Relationship" or attributes.get("TargetMode") == "External":
            return
        target = unquote(attributes.get("Target", "").replace("\\", "/"))
        full = posixpath.normpath(posixpath.join("/", self._folder, target)).lstrip("/")
        kind = attributes.get("Type", "").rsplit("/", 1)[-1]
        self._rows.append((attributes.get("Id", ""), kind, full))

    def end(self, name: str) -> None:
        """Nothing to do."""

    def data(self, text: str) -> None:
        """Nothing to do."""

    def by_id(self, identifier: str) -> str | None:
        """Name the part with this relationship id."""
        return next((part for row, _, part in self._rows if row == identifier), None)

    def of_kind(self, *kinds: str) -> list[str]:
        """Name the parts of these kinds (the last word of the relationship type), once each."""
        return list(dict.fromkeys(part for _, kind, part in self._rows if kind in kinds))


def _damaged() -> Rejected:
    return Rejected(
        Reason.CORRUPT, "The file is damaged: it is no complete ZIP package. Upload it again."
    )


class Package:
    """A ZIP file opened within limits.

    Args:
        path: The file.
        limits: `unzipped_bytes` is shared by all parts that are read.

    Raises:
        Rejected: `corrupt` when it is no readable ZIP, `too_large` with absurdly many members.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        try:
            self._zip = zipfile.ZipFile(path)
        except OSError as error:
            if error.errno not in _BAD_OFFSETS:
                raise
            raise _damaged() from error
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise _damaged() from error
        members = self._zip.infolist()
        if len(members) > _MOST_MEMBERS:
            raise Rejected(Reason.TOO_LARGE, f"The package has {len(members):,} parts.")
        # Part names are case-insensitive, and some writers use backslashes.
        self._members = {
            member.filename.replace("\\", "/").lstrip("/").lower(): member for member in members
        }
        self._left = limits.unzipped_bytes
        self._limit = limits.unzipped_bytes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def has(self, part: str) -> bool:
        """Tell whether the part exists."""
        return part.lower() in self._members

    def names(self) -> list[str]:
        """List all part names, in lower case, in the order of the directory."""
        return list(self._members)

    def pieces(self, part: str) -> Iterator[bytes]:
        """Inflate one part piece by piece.

        Raises:
            Rejected: `too_large` by declared or actual size, `corrupt`, `encrypted`.
        """
        member = self._members.get(part.lower())
        if member is None:
            raise Rejected(Reason.CORRUPT, f"The file is damaged: its part {part!r} is missing.")
        if member.flag_bits & _ENCRYPTED_FLAG:
            raise Rejected(Reason.ENCRYPTED, "The ZIP package is protected by a password.")
        self._spend(member.file_size, part, only_check=True)
        try:
            with self._zip.open(member) as stream:
                while piece := stream.read(_PIECE):
                    self._spend(len(piece), part)
                    yield piece
        except (
            zipfile.BadZipFile,
            zlib.error,
            lzma.LZMAError,
            EOFError,
            ValueError,
            OSError,
            NotImplementedError,
        ) as error:
            if isinstance(error, OSError) and error.errno not in _BAD_OFFSETS:
                raise
            raise Rejected(
                Reason.CORRUPT, f"The file is damaged: its part {part!r} can't be unpacked."
            ) from error

    def read(self, part: str, reader: Reader) -> None:
        """Feed one XML part to a reader.

        Raises:
            Rejected: As `pieces`; `corrupt` when the part is not well-formed or declares entities.
        """
        parser = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        short: dict[str, str] = {}

        def named(full: str) -> str:
            known = short.get(full)
            if known is None:
                uri, _, local = full.rpartition("}")
                known = short[full] = f"{_PREFIXES.get(uri, '?')}:{local}" if uri else local
            return known

        def begin(full: str, attributes: dict[str, str]) -> None:
            reader.start(named(full), {named(key): value for key, value in attributes.items()})

        def refuse(*_: object) -> None:
            raise Rejected(
                Reason.CORRUPT,
                f"The part {part!r} declares a document type, which no Office file may do.",
            )

        parser.StartElementHandler = begin
        parser.EndElementHandler = lambda full: reader.end(named(full))
        parser.CharacterDataHandler = reader.data
        parser.StartDoctypeDeclHandler = refuse
        try:
            for piece in self.pieces(part):
                parser.Parse(piece, False)
            parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise Rejected(
                Reason.CORRUPT,
                f"The file is damaged: its part {part!r} is not well-formed ({error}).",
            ) from error

    def relationships(self, part: str = "") -> Relationships:
        """Read the relationships of a part, or of the package; none if there are none."""
        folder, name = posixpath.split(part)
        where = posixpath.join(folder, "_rels", f"{name}.rels")
        found = Relationships(part)
        if self.has(where):
            self.read(where, found)
        return found

    def verify_parts(self, suffixes: tuple[str, ...]) -> None:
        """Inflate the parts with these suffixes and check their sums, keeping nothing.

        For readers that open the file by themselves and know no limits.

        Raises:
            Rejected: `too_large`, `corrupt`, `encrypted`.
        """
        for name in self._members:
            if name.endswith(suffixes):
                for _ in self.pieces(name):
                    pass

    def _spend(self, size: int, part: str, *, only_check: bool = False) -> None:
        if size > self._left:
            raise Rejected(
                Reason.TOO_LARGE,
                f"Unpacked, the file is larger than {self._limit >> 20:,} MB (at {part!r}).",
            )
        if not only_check:
            self._left -= size


class Properties:
    """Reads `docProps/core.xml` and `docProps/app.xml`: title, language, stored page count."""

    def __init__(self) -> None:
        self.title = ""
        self.language = ""
        self.page_count = 0
        self._text = ""

    @classmethod
    def of(cls, package: Package) -> Properties:
        """Read the properties; damaged ones count as absent."""
        found = cls()
        for part in package.relationships().of_kind("core-properties", "extended-properties"):
            try:
                package.read(part, found)
            except Rejected as error:
                if error.reason != Reason.CORRUPT:
                    raise
        return found

    def start(self, name: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002 - of Reader
        """Begin an element."""
        self._text = ""

    def data(self, text: str) -> None:
        """Take character data."""
        self._text += text

    def end(self, name: str) -> None:
        """Keep what the element held."""
        match name:
            case "dc:title":
                self.title = self._text
            case "dc:language":
                self.language = self._text.strip()
            case "ep:Pages" if self._text.strip().isdecimal():
                self.page_count = int(self._text[:9])
        self._text = ""
