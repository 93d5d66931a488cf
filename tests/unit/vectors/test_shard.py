"""What only the embedded engine has: a folder, its lock, and a disk that may be full."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from drivefeed.domain.errors import NeedsAttention, PartDown
from drivefeed.indexer.vectors import folder_lock
from drivefeed.indexer.vectors.identity import Identity
from drivefeed.indexer.vectors.shard import Shard

MADE_FOR = Identity(model="m", dimension=2)
ROW = ("00000000-0000-0000-0000-000000000001", [1.0, 0.0], {"text": "t", "live": True})


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_booleans_can_be_matched_and_come_back_as_booleans(tmp_path: Path) -> None:
    shard = Shard(tmp_path, MADE_FOR)
    shard.upsert([ROW])
    assert shard.count([("live", True)]) == 1
    assert shard.count([("live", False)]) == 0
    ((_, _, payload),) = shard.search([1.0, 0.0], "t", [("live", True)], 5)
    assert payload == {"text": "t", "live": True}
    assert payload["live"] is True
    shard.close()


def test_a_second_opening_is_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "_LOCK_PATIENCE", 0.0)
    first = Shard(tmp_path, MADE_FOR)
    with pytest.raises(NeedsAttention, match="Another process is using the vector index in"):
        Shard(tmp_path, MADE_FOR)
    first.close()
    Shard(tmp_path, MADE_FOR).close()


def test_nothing_is_written_on_a_nearly_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = Shard(tmp_path, MADE_FOR)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1, 1, 5 * 2**20))
    with pytest.raises(PartDown, match="Only 5 MiB are free"):
        shard.upsert([ROW])
    assert shard.count([]) == 0
    shard.close()


def test_a_creation_that_was_cut_off_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "creating").touch()
    (tmp_path / "shard" / "segments").mkdir(parents=True)
    (tmp_path / "shard" / "edge_config.json").write_text("{")
    shard = Shard(tmp_path, MADE_FOR)
    shard.upsert([ROW])
    shard.close()
    assert not (tmp_path / "creating").exists()
    assert Shard(tmp_path, MADE_FOR).count([]) == 1


def test_vectors_without_an_identity_are_not_thrown_away(tmp_path: Path) -> None:
    shard = Shard(tmp_path, MADE_FOR)
    shard.upsert([ROW])
    shard.close()
    facts = (tmp_path / "identity.json").read_bytes()
    (tmp_path / "identity.json").unlink()
    with pytest.raises(NeedsAttention, match=r"identity\.json.*is missing"):
        Shard(tmp_path, MADE_FOR)
    (tmp_path / "identity.json").write_bytes(facts)
    assert Shard(tmp_path, MADE_FOR).count([]) == 1


def test_a_vacuum_keeps_what_was_not_removed(tmp_path: Path) -> None:
    shard = Shard(tmp_path, MADE_FOR)
    rows = [
        (f"00000000-0000-0000-0000-{n:012}", [1.0, n / 1000], {"text": f"w{n}", "live": n % 2 == 0})
        for n in range(3_000)
    ]
    shard.upsert(rows)
    assert shard.remove([("live", False)]) == 1_500
    shard.vacuum()
    assert shard.count([]) == 1_500
    assert shard.search([0.0, 1.0], "w1234", [], 1)[0][0] == rows[1_234][0]
    shard.close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PartDown, match="cannot be opened"):
        Shard(tmp_path / "file" / "index", MADE_FOR)
