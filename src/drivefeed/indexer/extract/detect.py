"""What a file really is: by its content first, by its name second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract import compound
from drivefeed.indexer.extract.package import CONTENT_TYPES, Package
from drivefeed.indexer.extract.text import looks_like_text
from drivefeed.indexer.model import Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from drivefeed.indexer.model import Limits

PDF: Final = "application/pdf"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX: Final = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLSB: Final = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
XLS: Final = "application/vnd.ms-excel"
HTML: Final = "text/html"
RTF: Final = "application/rtf"
CSV: Final = "text/csv"
MARKDOWN: Final = "text/markdown"
PLAIN: Final = "text/plain"
TIFF: Final = "image/tiff"

_TEXT_EXTENSIONS: Final = {
    **dict.fromkeys(("csv", "tsv"), CSV),
    **dict.fromkeys(("md", "markdown"), MARKDOWN),
    **dict.fromkeys(
        ("txt", "text", "log", "json", "jsonl", "xml", "yaml", "yml", "toml", "ini", "rst", "srt"),
        PLAIN,
    ),
}
# What a name promises; content that is none of these things at all is damaged, not unsupported.
_PROMISES: Final = {
    "pdf": "PDF",
    "docx": "Word document",
    "docm": "Word document",
    "dotx": "Word template",
    "pptx": "presentation",
    "pptm": "presentation",
    "ppsx": "presentation",
    "potx": "presentation template",
    "xlsx": "workbook",
    "xlsm": "workbook",
    "xlsb": "workbook",
    "xls": "workbook",
    "rtf": "RTF document",
}
_MAIN_PARTS: Final = (
    ("wordprocessingml.", DOCX),
    ("ms-word.", DOCX),
    ("presentationml.", PPTX),
    ("ms-powerpoint.", PPTX),
    ("spreadsheetml.", XLSX),
    ("ms-excel.sheet.binary", XLSB),
    ("ms-excel.", XLSX),
)
_PICTURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"II*\x00", TIFF),
    (b"MM\x00*", TIFF),
)
PICTURES: Final = frozenset(media_type for _, media_type in _PICTURES)
"""Media types of pictures, which are documents where OCR is on."""
_FOREIGN: Final = (
    (b"MZ", "a Windows program"),
    (b"\x7fELF", "a Linux program"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"\xca\xfe\xba\xbe", "a program"),
    (b"GIF8", "a picture"),
    (b"RIFF", "a media file"),
    (b"ID3", "a sound file"),
    (b"OggS", "a media file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\x00", "a database"),
)
_HEAD: Final = 64 * 1024
_PDF_WINDOW: Final = 1024  # readers accept leading bytes before the header up to here
_HTML_STARTS: Final = (b"<!doctype html", b"<html", b"<head", b"<body", b"<script", b"<table")


def detect(path: Path, *, name: str, media_type: str | None, limits: Limits) -> str:
    """Name the media type that a reader exists for.

    Args:
        path: The file.
        name: Its name at the source; only the extension counts.
        media_type: What the source believes it is; used where content and name are silent.
        limits: For the ZIP parts that must be opened to know, and whether there is OCR.

    Raises:
        Rejected: `unsupported_type`, `corrupt`, `encrypted`, or `no_text` for an empty file.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if not head:
        raise Rejected(Reason.NO_TEXT, "The file is empty (0 bytes).")
    extension = name.rpartition(".")[2].lower() if "." in name else ""
    if b"%PDF-" in head[:_PDF_WINDOW]:
        return PDF
    if head.startswith(compound.MAGIC):
        return _compound_type(path, extension)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return _package_type(path, extension, limits)
    if head.startswith(b"{\\rtf"):
        return RTF
    if picture := _picture_type(head, limits):
        return picture
    _refuse_foreign(head)
    return _text_type(head, extension, media_type)


def _picture_type(head: bytes, limits: Limits) -> str | None:
    for magic, media_type in _PICTURES:
        if head.startswith(magic):
            if not limits.ocr_pages:
                raise _unsupported("Its content is a picture, and OCR is off")
            return media_type
    return None


def _refuse_foreign(head: bytes) -> None:
    for magic, what in _FOREIGN:
        # Some of these are letters that a text may well begin with.
        if head.startswith(magic) and not (magic.isalnum() and _plainly_text(head)):
            raise _unsupported(f"Its content is {what}, whatever its name says")


def _plainly_text(head: bytes) -> bool:
    return b"\x00" not in head and looks_like_text(head)


def _unsupported(why: str) -> Rejected:
    return Rejected(Reason.UNSUPPORTED_TYPE, f"{why}; drivefeed does not read this type.")


def _corrupt(extension: str) -> Rejected:
    what = _PROMISES.get(extension, "document")
    return Rejected(Reason.CORRUPT, f"The file is called a {what}, but its content is damaged.")


def _compound_type(path: Path, extension: str) -> str:
    try:
        names = compound.stream_names(path)
    except ValueError as error:
        raise _corrupt(extension) from error
    if names & {"worddocument"}:
        raise _unsupported("It is a Word document of the binary format (.doc); save it as .docx")
    if names & {"powerpoint document", "pp97_dualstorage"}:
        raise _unsupported("It is a presentation of the binary format (.ppt); save it as .pptx")
    if names & {"encryptedpackage", "\x06dataspaces", "\tdrmcontent"}:
        raise Rejected(
            Reason.ENCRYPTED, "The file is protected by a password or by rights management."
        )
    if names & {"workbook", "book"}:
        return XLS
    raise _unsupported("It is an OLE file that is no workbook")


class _ContentTypes:
    """Reads which part is the main one."""

    def __init__(self) -> None:
        self.found: str | None = None

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        kind = attributes.get("ContentType", "")
        if name in ("ct:Override", "ct:Default") and "main" in kind.lower():
            for fragment, media_type in _MAIN_PARTS:
                if fragment in kind.lower() and self.found is None:
                    self.found = media_type

    def end(self, name: str) -> None:
        pass

    def data(self, text: str) -> None:
        pass


def _package_type(path: Path, extension: str, limits: Limits) -> str:
    with Package(path, limits) as package:
        if package.has(CONTENT_TYPES):
            types = _ContentTypes()
            package.read(CONTENT_TYPES, types)
            if types.found is not None:
                return types.found
            raise _unsupported("It is an Office package without a document, slides or sheets")
        if package.has("encryption.xml") or package.has("META-INF/encryption.xml"):
            raise Rejected(Reason.ENCRYPTED, "The package is encrypted.")
        if extension in _PROMISES and not package.has("mimetype"):
            raise _corrupt(extension)
    raise _unsupported("It is a ZIP archive or an OpenDocument file")


def _text_type(head: bytes, extension: str, media_type: str | None) -> str:
    if not looks_like_text(head):
        if extension in _PROMISES:
            raise _corrupt(extension)
        raise _unsupported("Its content is neither text nor a known document")
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:64].lower()
    if extension in ("html", "htm", "xhtml") or (
        extension not in _TEXT_EXTENSIONS and start.startswith(_HTML_STARTS)
    ):
        return HTML
    if extension in _PROMISES:
        raise _corrupt(extension)
    if extension in _TEXT_EXTENSIONS:
        return _TEXT_EXTENSIONS[extension]
    if media_type and media_type.startswith("text/"):
        return HTML if media_type.startswith(HTML) else PLAIN
    raise _unsupported(
        f"Its name ends in .{extension}" if extension else "Its name has no extension"
    )
