"""ZIP containers that are the same bytes whenever they are written."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

#: The time that every sample document claims to be from.
WRITTEN_AT = datetime(2026, 3, 16, 9, 0, tzinfo=UTC)


def with_fixed_times(container: bytes) -> bytes:
    """Return the same members in the same order, each dated `WRITTEN_AT`.

    The libraries for Office files stamp the members with the time of the day, so that two runs
    would give two different files.
    """
    target = BytesIO()
    with ZipFile(BytesIO(container)) as source, ZipFile(target, "w", ZIP_DEFLATED) as copy:
        for member in source.infolist():
            dated = ZipInfo(member.filename, WRITTEN_AT.timetuple()[:6])
            dated.compress_type = ZIP_DEFLATED
            # Without it the byte that names the writing system differs between platforms.
            dated.create_system = 0
            copy.writestr(dated, source.read(member))
    return target.getvalue()
