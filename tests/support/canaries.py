"""Canaries: values that must be found nowhere but where they belong, and the scanner for them."""

from __future__ import annotations

import base64
import io
import sqlite3
import zipfile
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

import redis

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

LEAST = 8
"""Shorter values would be found by chance."""


@dataclass(frozen=True)
class Found:
    canary: str
    form: str
    place: str
    around: str


class Scanner:
    """Looks for values in bytes, in every form in which they may have been written down.

    Args:
        canaries: the values by name.
    """

    def __init__(self, canaries: Mapping[str, str | bytes]) -> None:
        self.names = set(canaries)
        self._needles: list[tuple[bytes, str, str]] = []
        for name, value in canaries.items():
            whole = value.encode() if isinstance(value, str) else value
            assert len(whole) >= LEAST, f"the canary {name} is too short to be told from chance"
            seen: set[bytes] = set()
            for form, needle in forms(whole):
                if needle not in seen:
                    seen.add(needle)
                    self._needles.append((needle, name, form))

    def scan(self, place: str, content: bytes | str) -> list[Found]:
        """Return what is found in one piece of content."""
        whole = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        found = []
        for needle, name, form in self._needles:
            at = whole.find(needle)
            if at >= 0:
                around = whole[max(0, at - 60) : at + len(needle) + 60]
                found.append(Found(name, form, place, around.decode("utf-8", "replace")))
        return found

    def scan_all(self, pieces: Iterator[tuple[str, bytes]]) -> list[Found]:
        return [one for place, content in pieces for one in self.scan(place, content)]


def forms(value: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the ways in which a value may be written: as it is, escaped, and encoded.

    Base64 of a text in whose middle the value stands looks different by where it begins; the part
    that is the same whatever stands around it is looked for, at each of the three offsets.
    """
    yield "plain", value
    text = value.decode("utf-8", "replace")
    if text.encode() == value:
        yield "URL", quote(text, safe="").encode()
        yield "form", quote_plus(text).encode()
        yield "JSON", text.encode("unicode_escape").replace(b"/", b"\\/")
        yield "UTF-16", text.encode("utf-16-le")
        yield "twice URL", quote(quote(text, safe=""), safe="").encode()
    yield "hex", value.hex().encode()
    yield "HEX", value.hex().upper().encode()
    yield "hex with spaces", value.hex(" ").encode()
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + value)
        # The first and the last group hold bits of neighbours.
        inner = encoded[4 if offset else 0 :].rstrip(b"=")
        inner = inner[: len(inner) - 1 - (len(inner) % 4 != 0)]
        yield f"base64 at {offset}", inner
        yield f"base64url at {offset}", inner.replace(b"+", b"-").replace(b"/", b"_")


def in_file(path: Path) -> Iterator[tuple[str, bytes]]:
    yield str(path.name), path.read_bytes()


def in_folder(
    folder: Path, *, without: frozenset[str] = frozenset()
) -> Iterator[tuple[str, bytes]]:
    """Yield every file below a folder, but for those whose first part is left out."""
    for path in sorted(folder.rglob("*")):
        below = path.relative_to(folder)
        if path.is_file() and below.parts[0] not in without:
            yield below.as_posix(), path.read_bytes()


def in_sqlite(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the raw bytes of a database and its WAL, and every value in its tables.

    A long value is cut up in the raw bytes, so values are looked at as well.
    """
    for one in (path, path.with_name(f"{path.name}-wal")):
        if one.exists():
            yield one.name, one.read_bytes()
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as database:
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (name,) in names:
            rows = database.execute(f'SELECT * FROM "{name}"')
            columns = [one[0] for one in rows.description]
            for row in rows:
                for column, value in zip(columns, row, strict=True):
                    if isinstance(value, str | bytes):
                        content = value.encode() if isinstance(value, str) else value
                        yield f"{name}.{column}", content


def in_redis(url: str) -> Iterator[tuple[str, bytes]]:
    """Yield every key and value of every database: read by its kind, and as DUMP gives it."""
    with redis.Redis.from_url(url, socket_timeout=30) as client:
        readers: dict[bytes, Any] = {
            b"string": lambda key: [client.get(key)],
            b"hash": lambda key: [one for pair in client.hgetall(key).items() for one in pair],
            b"list": lambda key: client.lrange(key, 0, -1),
            b"set": client.smembers,
            b"zset": lambda key: client.zrange(key, 0, -1),
            b"stream": lambda key: [
                one for _, entry in client.xrange(key) for pair in entry.items() for one in pair
            ],
        }
        for key in client.scan_iter(count=1000):
            name = f"redis {key.decode('utf-8', 'replace')}"
            yield name, key
            yield f"{name} (dump)", client.dump(key) or b""
            # One that expired meanwhile has no kind any more.
            for value in readers.get(client.type(key), lambda _: ())(key):
                yield name, value or b""


def in_zip(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a ZIP, as they are when they are unpacked, and their names."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            yield f"bundle {name}", name.encode()
            yield f"bundle {name}", archive.read(name)
