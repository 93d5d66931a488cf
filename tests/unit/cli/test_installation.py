"""What every command says of an installation that it cannot work with, typed in this process."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from support.commands import run_command

if TYPE_CHECKING:
    from pathlib import Path


APP = "00000000-1111-2222-3333-444444444444"


@pytest.fixture(scope="module")
def from_tomorrow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installation whose catalog a newer version has migrated."""
    home = tmp_path_factory.mktemp("tomorrow")
    run_command("--data", "data", "init", cwd=home)
    with closing(sqlite3.connect(home / "data" / "catalog.sqlite")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    return home


@pytest.mark.parametrize(
    "words",
    [
        "init",
        "status",
        "up",
        "account list",
        "account test office",
        "web --port 0",
        "secrets status",
        "secrets rotate --new-key",
        "key list",
        "connect https://contoso.sharepoint.com/sites/Lab",
        "plan https://contoso.sharepoint.com/sites/Lab",
        "notices",
        "connections apply connections.toml",
    ],
)
def test_a_catalog_of_a_newer_version_is_told_by_every_command(
    from_tomorrow: Path, words: str
) -> None:
    key = (from_tomorrow / "data" / "secret.key").read_bytes()
    (from_tomorrow / "connections.toml").write_text("")
    done = run_command("--data", "data", *words.split(), cwd=from_tomorrow, ok=[3])
    assert "made by a newer version of drivefeed (migration 9999; this one knows" in done.stderr
    assert "Run that version, or restore the catalog from before it." in done.stderr
    assert (from_tomorrow / "data" / "secret.key").read_bytes() == key


def test_a_lost_key_file_is_never_replaced(tmp_path: Path) -> None:
    key = tmp_path / "data" / "secret.key"
    (tmp_path / "secret").write_text("the-secret-of-an-app")
    add = ("account", "add", "office", "--tenant=contoso.onmicrosoft.com", f"--client-id={APP}")
    add = (*add, "--secret-file=secret")
    run_command("--data", "data", "init", cwd=tmp_path)
    run_command("--data", "data", *add, "--no-test", cwd=tmp_path)
    key.unlink()
    for words in ("status", "account list", "doctor", "support-bundle", "secrets status"):
        done = run_command("--data", "data", *words.split(), cwd=tmp_path, ok=range(4))
        assert not key.exists(), words
    assert "missing" in done.stdout
    assert "The file is gone. Bring it back from its copy" in done.stdout
    for words in ("init", "secrets rotate", "secrets rotate --new-key"):
        said = run_command("--data", "data", *words.split(), cwd=tmp_path, ok=[3]).stderr
        assert "The catalog holds 1 secret sealed with key" in said, words
        assert "is gone. Bring it back from its copy" in said
    add = (*add[:2], "other", *add[3:])
    said = run_command("--data", "data", *add, cwd=tmp_path, ok=[3]).stderr
    assert "is gone. Bring it back from its copy" in said
    said = run_command("--data", "data", "account", "test", "office", cwd=tmp_path, ok=[1]).stdout
    assert "is not there. If it was lost, bring it back from its copy" in said
    assert not key.exists()


def test_who_changes_a_demo_without_naming_it_is_told(tmp_path: Path) -> None:
    demo = tmp_path / "drivefeed-demo" / "data-1"
    run_command("--data", str(demo), "init", cwd=tmp_path)
    (tmp_path / "drivefeed-demo" / "last").write_text(str(demo))
    words = f"This is the data folder of the last demo, '{demo}'; --data or DRIVEFEED_DATA_DIR"
    for change in ("init", "key create new --scopes read", "org add branch", "pause"):
        done = run_command(*change.split(), cwd=tmp_path, ok=[0, 1])
        assert done.stderr.count(words) == 1, change
    assert not run_command("org", "list", cwd=tmp_path).stderr
    assert not run_command("--data", str(demo), "org", "add", "other", cwd=tmp_path).stderr
