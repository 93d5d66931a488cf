"""What a directory drive makes of changes that leave size and time of a file as they were."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from graphsim.clock import ManualClock
from graphsim.directory import DirectoryDrive
from graphsim.items import Item, Profile
from graphsim.quickxor import quickxor
from graphsim.seals import Seals

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OLD = (1_700_000_000, 1_700_000_000)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "served" / "a.txt"
    path.parent.mkdir()
    path.write_text("one")
    os.utime(path, OLD)
    return path


@pytest.fixture
def drive(tmp_path: Path, file: Path) -> Iterator[DirectoryDrive]:
    made = serve(tmp_path, file)
    yield made
    made.close()


def serve(tmp_path: Path, file: Path) -> DirectoryDrive:
    state = tmp_path / "state"
    return DirectoryDrive(file.parent, Profile.BUSINESS, Seals(b"secret"), ManualClock(), state)


async def look(drive: DirectoryDrive) -> Item:
    await drive.refresh(at_once=True)
    (found,) = drive.tree.children(drive.tree.root_id)
    return found


def edit_in_secret(path: Path, text: str) -> None:
    """Write other bytes of the same number and put the time back, as some tools do."""
    before = path.stat()
    assert len(text) == before.st_size
    # The clock of a file system moves in steps.
    while path.stat().st_ctime_ns == before.st_ctime_ns:
        path.write_text(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def change_permissions(path: Path) -> None:
    before, mode = path.stat().st_ctime_ns, 0o600
    while path.stat().st_ctime_ns == before:
        path.chmod(mode := mode ^ 0o040)


async def test_an_edit_that_keeps_size_and_time_is_seen(drive: DirectoryDrive, file: Path) -> None:
    before = await look(drive)
    edit_in_secret(file, "two")
    after = await look(drive)
    assert (after.id, after.quickxor) == (before.id, quickxor(b"two"))
    assert after.ctag_version == before.ctag_version + 1
    assert after.seq > before.seq


async def test_it_is_seen_by_a_download_before_the_next_look(
    drive: DirectoryDrive, file: Path
) -> None:
    before = await look(drive)
    edit_in_secret(file, "two")
    item, body = await drive.open(before)
    body.close()
    assert item.quickxor == quickxor(b"two")


async def test_it_is_seen_after_a_restart(
    tmp_path: Path, drive: DirectoryDrive, file: Path
) -> None:
    before = await look(drive)
    drive.close()
    edit_in_secret(file, "two")
    again = serve(tmp_path, file)
    try:
        after = await look(again)
    finally:
        again.close()
    assert (after.id, after.quickxor) == (before.id, quickxor(b"two"))


async def test_other_permissions_are_read_once_and_are_no_change(
    drive: DirectoryDrive, file: Path
) -> None:
    before = await look(drive)
    change_permissions(file)
    for _ in range(3):
        after = await look(drive)
        tags = (after.seq, after.etag_version, after.ctag_version)
        assert tags == (before.seq, before.etag_version, before.ctag_version)
        assert drive.files_read == 2
