"""Writers of tiny documents, so that tests own every byte they read."""

from __future__ import annotations

import hashlib
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_RELS = "http://schemas.openxmlformats.org/package/2006/relationships"
_WORD_MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_SLIDES_MAIN = "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"


def relationships(rows: Mapping[str, tuple[str, str]]) -> str:
    """Write a relationships part: id → (kind, target)."""
    inside = "".join(
        f'<Relationship Id="{key}" Type="{OFFICE}/{kind}" Target="{target}"/>'
        for key, (kind, target) in rows.items()
    )
    return f'<Relationships xmlns="{_RELS}">{inside}</Relationships>'


def word_part(inside: str, root: str = "document") -> str:
    """Wrap WordprocessingML in a part with the usual namespaces."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><w:{root} xmlns:w="{W}" xmlns:r="{OFFICE}"'
        ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
        ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
        f' xmlns:v="urn:schemas-microsoft-com:vml">{inside}</w:{root}>'
    )


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def package(path: Path, main: str, kind: str, parts: Mapping[str, str | bytes]) -> Path:
    """Write a package whose main part is `main`."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_TYPES}"><Default Extension="xml" ContentType="application/xml"/>'
            f'<Override PartName="/{main}" ContentType="{kind}"/></Types>',
        )
        archive.writestr("_rels/.rels", relationships({"rId1": ("officeDocument", main)}))
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def write_docx(path: Path, body: str, more: Mapping[str, str | bytes] | None = None) -> Path:
    """Write a DOCX with this body, and with further parts as they are given."""
    parts = {"word/document.xml": word_part(f"<w:body>{body}</w:body>"), **(more or {})}
    return package(path, "word/document.xml", _WORD_MAIN, parts)


def write_pptx_package(path: Path, parts: Mapping[str, str]) -> Path:
    """Write a presentation package from raw parts."""
    return package(path, "ppt/presentation.xml", _SLIDES_MAIN, parts)


def _rc4(key: bytes, data: bytes) -> bytes:
    box = list(range(256))
    j = 0
    for i in range(256):
        j = (j + box[i] + key[i % len(key)]) % 256
        box[i], box[j] = box[j], box[i]
    out = bytearray()
    i = j = 0
    for byte in data:
        i = (i + 1) % 256
        j = (j + box[i]) % 256
        box[i], box[j] = box[j], box[i]
        out.append(byte ^ box[(box[i] + box[j]) % 256])
    return bytes(out)


_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")


def write_pdf(path: Path, pages: list[str], *, password: str | None = None) -> Path:
    """Write a PDF with one line of text on each page.

    Args:
        path: Where to.
        pages: Texts in Latin letters, without brackets.
        password: Encrypts (40-bit RC4, ISO 32000-1 7.6.3) for this user password; may be empty.
    """
    extra, key = b"", b""
    if password is not None:
        owner = hashlib.md5((b"owner" + _PADDING)[:32]).digest()[:5]
        user = (password.encode() + _PADDING)[:32]
        o = _rc4(owner, user)
        rights = (-4).to_bytes(4, "little", signed=True)
        key = hashlib.md5(user + o + rights + b"id").digest()[:5]
        extra = (
            f"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <{o.hex()}>"
            f" /U <{_rc4(key, _PADDING).hex()}> >> /ID [<6964> <6964>]"
        ).encode()
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>"
        % (b" ".join(b"%d 0 R" % (4 + 2 * i) for i in range(len(pages))), len(pages)),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for index, text in enumerate(pages):
        stream = b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % text.encode("latin-1")
        if key:
            own = hashlib.md5(key + (5 + 2 * index).to_bytes(3, "little") + b"\0\0").digest()[:10]
            stream = _rc4(own, stream)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (5 + 2 * index)
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        extra,
        start,
    )
    path.write_bytes(bytes(out))
    return path
