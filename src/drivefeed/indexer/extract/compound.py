"""The names inside an OLE compound file ([MS-CFB]), which tell what it is.

Only the directory is read. Chains are followed through the allocation table with bounds, for the
file may be hostile.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

MAGIC: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_FREE: Final = 0xFFFFFFFA  # this and everything above it is no sector
_MOST_SECTORS: Final = 4_096
_HEADER: Final = 512
_ENTRY: Final = 128
_NAME_BYTES: Final = range(4, 65)  # UTF-16 with its final zero


def stream_names(path: Path) -> frozenset[str]:
    """List the names of all streams and storages, in lower case.

    Raises:
        ValueError: The file is damaged.
    """
    with path.open("rb") as file:
        header = file.read(_HEADER)
        if len(header) < _HEADER or not header.startswith(MAGIC):
            raise ValueError("no compound file header")
        shift = struct.unpack_from("<H", header, 30)[0]
        if shift not in (9, 12):
            raise ValueError("unknown sector size")
        size = 1 << shift
        first = struct.unpack_from("<I", header, 48)[0]
        tables = struct.unpack_from("<109I", header, 76)
        names: set[str] = set()
        sector, seen = first, 0
        while sector < _FREE and seen < _MOST_SECTORS:
            names.update(_names(_sector(file, sector, size)))
            sector = _next(file, tables, sector, size)
            seen += 1
    if not names:
        raise ValueError("no directory")
    return frozenset(names)


def _sector(file: BinaryIO, number: int, size: int) -> bytes:
    file.seek((number + 1) * size)
    return file.read(size)


def _next(file: BinaryIO, tables: tuple[int, ...], sector: int, size: int) -> int:
    per_table = size // 4
    index = sector // per_table
    # Tables beyond the header's 109 start at 7 MB: a directory spread so far is read in part.
    if index >= len(tables) or tables[index] >= _FREE:
        return _FREE
    table = _sector(file, tables[index], size)
    offset = sector % per_table * 4
    if len(table) < offset + 4:
        return _FREE
    following: int = struct.unpack_from("<I", table, offset)[0]
    return following


def _names(sector: bytes) -> list[str]:
    names = []
    for start in range(0, len(sector) - _ENTRY + 1, _ENTRY):
        length, kind = struct.unpack_from("<HB", sector, start + 64)
        if kind and length in _NAME_BYTES:
            raw = sector[start : start + length - 2]
            names.append(raw.decode("utf-16-le", errors="replace").lower())
    return names
