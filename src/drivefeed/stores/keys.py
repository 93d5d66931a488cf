"""Which keys a store accepts: the same ones in every store, so that objects can move house."""

from __future__ import annotations

MAX_KEY_BYTES = 1024
"""S3's limit for a key in UTF-8 (Amazon S3 user guide, "Naming Amazon S3 objects")."""

MAX_SEGMENT_BYTES = 255
"""What ext4, APFS, NTFS and SeaweedFS allow for one name between slashes."""

PARTIAL = ".partial"
"""First segment that belongs to the directory store: unfinished uploads lie there."""

_FIRST_PRINTABLE = 0x20
_DELETE = 0x7F


def require_key(key: str) -> str:
    """Return ``key`` if every store can hold it.

    Backslashes are refused because SeaweedFS turns them into slashes, control characters because
    S3 listings (XML 1.0) cannot carry them.

    Raises:
        ValueError: the key is empty, absolute, too long, or has a segment that is empty, ``.``
            or ``..``. Keys are made by drivefeed, so this is a defect and no fault of a file.
    """
    segments = key.split("/")
    if not key or "" in segments or "." in segments or ".." in segments:
        raise ValueError(f"The object key {key!r} has an empty, '.' or '..' segment.")
    if any(ord(c) < _FIRST_PRINTABLE or ord(c) == _DELETE or c == "\\" for c in key):
        raise ValueError(f"The object key {key!r} has a control character or a backslash.")
    if segments[0] == PARTIAL:
        raise ValueError(f"The object key {key!r} begins with the reserved name {PARTIAL!r}.")
    encoded = [segment.encode() for segment in segments]
    longest = max(map(len, encoded))
    if longest > MAX_SEGMENT_BYTES or sum(map(len, encoded)) + len(encoded) - 1 > MAX_KEY_BYTES:
        raise ValueError(
            f"The object key {key[:60]!r}… is too long: {MAX_KEY_BYTES} bytes are the limit, "
            f"{MAX_SEGMENT_BYTES} between two slashes."
        )
    return key


def require_prefix(prefix: str) -> str:
    """Return ``prefix`` if keys may start with it; the empty one means all keys.

    Raises:
        ValueError: no valid key can start like this.
    """
    if prefix:
        require_key(prefix + "x" if prefix.endswith("/") else prefix)
    return prefix
