"""Byte ranges of RFC 9110 section 14: what part of a file a request asks for."""

from __future__ import annotations

import re

_SPEC = re.compile(r"^(\d*)-(\d*)$")
MAX_RANGES = 16


class UnsatisfiableRangeError(ValueError):
    """No part of the requested ranges lies inside the file: answer 416."""


def parse_ranges(header: str | None, size: int) -> list[tuple[int, int]] | None:
    """Return the requested parts as half-open offsets, or ``None`` for the whole file.

    A header that is no byte range, or asks for too many parts, is ignored, as the RFC allows.

    Raises:
        UnsatisfiableRangeError: The ranges are well-formed and none begins inside the file.
    """
    if header is None or not header.lower().startswith("bytes="):
        return None
    parts: list[tuple[int, int]] = []
    specs = [spec.strip() for spec in header[6:].split(",")]
    if len(specs) > MAX_RANGES:
        return None
    for spec in specs:
        match = _SPEC.match(spec)
        if match is None or spec == "-":
            return None
        first, last = match.groups()
        if first:
            begin, end = int(first), int(last) + 1 if last else size
            if last and end <= begin:
                return None
        else:
            begin, end = max(size - int(last), 0), size
        if begin < min(end, size):
            parts.append((begin, min(end, size)))
    if not parts:
        raise UnsatisfiableRangeError(f"No byte of {header} lies within {size} bytes.")
    return parts
