"""One process of many: what it may be, and over which parts."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from drivefeed.domain.errors import NeedsAttention
from drivefeed.ports import Stage
from drivefeed.roles import (
    SCHEDULER,
    UP,
    owner_name,
    owns_embedded_index,
    require_shared,
    worker_for,
)
from drivefeed.settings import Settings, load_settings
from support.commands import run_command

if TYPE_CHECKING:
    from pathlib import Path

SHARED = {
    "database_url": "postgresql://u:word-of-the-test@h/d",
    "redis_url": "redis://h/0",
    "s3": {"bucket": "b"},
}


@pytest.mark.parametrize(
    ("without", "words"),
    [
        ("database_url", "a Postgres instead of SQLite"),
        ("redis_url", "instead of the embedded queue"),
        ("s3", "an S3 bucket instead of the data folder"),
    ],
)
def test_each_part_for_one_process_is_named(tmp_path: Path, without: str, words: str) -> None:
    lacking = {key: value for key, value in SHARED.items() if key != without}
    with pytest.raises(NeedsAttention) as caught:
        require_shared(Settings(data_dir=tmp_path, **lacking), SCHEDULER)
    said = str(caught.value)
    assert words in said
    assert said.count("·") == 1
    assert "'drivefeed scheduler'" in said


def test_shared_parts_will_do(tmp_path: Path) -> None:
    require_shared(Settings(data_dir=tmp_path, **SHARED), worker_for([]))
    folder = {key: value for key, value in SHARED.items() if key != "s3"}
    require_shared(Settings(data_dir=tmp_path, shared_objects=True, **folder), worker_for([]))


def test_the_command_refuses_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    done = run_command("--data", str(tmp_path / "data"), "worker", cwd=tmp_path, ok=(3,))
    assert done.stderr.startswith("drivefeed: 'drivefeed worker' is one process of many")
    assert not (tmp_path / "data/catalog.sqlite").exists()


def test_a_worker_has_the_queues_that_it_was_given() -> None:
    assert worker_for(["transfer", " index "]).stages == {Stage.TRANSFER, Stage.INDEX}
    assert worker_for([""]).stages == set(Stage)
    with pytest.raises(NeedsAttention, match=r"no queue 'transfers'\. The queues are: discover"):
        worker_for(["transfers"])


def test_the_embedded_index_belongs_to_a_worker_of_its_queues(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, **SHARED)
    assert owns_embedded_index(settings, worker_for(["publish"]))
    assert not owns_embedded_index(settings, worker_for(["transfer"]))
    assert not owns_embedded_index(settings, SCHEDULER)
    assert not owns_embedded_index(settings, UP)
    server = Settings(data_dir=tmp_path, qdrant_url="http://q", **SHARED)
    assert not owns_embedded_index(server, worker_for(["publish"]))


def test_a_long_name_of_a_machine_fits_into_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "h" * 63)
    name = owner_name("12345678-0000")
    assert len(name.replace(str(os.getpid()), "4194304")) <= 64
    assert name.endswith(f"-{os.getpid()}-12345678")


# Settings of the database


def test_a_database_url_is_read_and_its_password_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql+asyncpg://u:word-of-the-test@h:5432/d?sslmode=x")
    settings = Settings(data_dir=tmp_path)
    assert settings.catalog_url == "postgresql://u:word-of-the-test@h:5432/d?sslmode=x"
    assert not settings.catalog_url.startswith("sqlite")
    assert "word-of-the-test" not in repr(settings)
    assert "word-of-the-test" not in json.dumps(settings.model_dump(mode="json"))


def test_another_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NeedsAttention, match="postgresql://") as caught:
        load_settings(data_dir=tmp_path, database_url="mysql://u:word-of-the-test@h/d")
    assert "word-of-the-test" not in str(caught.value)
