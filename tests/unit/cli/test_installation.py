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
    assert "The catalog was migrated to 9999 by a newer drivefeed" in done.stderr
    assert "Update drivefeed here" in done.stderr
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


def test_a_second_init_says_what_is_next_now(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the-secret-of-an-app")
    first = run_command("--data", "data", "init", cwd=tmp_path).stdout
    assert "drivefeed account add NAME" in first
    add = ("account", "add", "office", "--tenant=contoso.onmicrosoft.com", f"--client-id={APP}")
    run_command("--data", "data", *add, "--secret-file=secret", "--no-test", cwd=tmp_path)
    again = run_command("--data", "data", "init", cwd=tmp_path).stdout
    assert "account add" not in again
    assert "drivefeed connect ADDRESS" in again


SETTINGS = """\
log_level = "loud"
nonsense = 1
poll_seconds = "often"
web_port = 70000
web_url = "ftp://x"
s3 = "bucket"

[embedding]
provider = "abacus"

[[accounts]]
name = "main"
tenant_id = "t"
client_id = "c"
secret = "a-secret-in-the-wrong-place"

[concurrency]
transfre = 8

[[connections]]
account = "main"
drive_id = "b!x"
interval = "soon"

[[notices]]
name = "desk"
kind = "pager"
"""


def test_settings_are_told_in_sentences_all_at_once(tmp_path: Path) -> None:
    (tmp_path / "drivefeed.toml").write_text(SETTINGS)
    said = run_command("--config", "drivefeed.toml", "status", cwd=tmp_path, ok=[3]).stderr
    for words in (
        "log_level: it is 'loud'; allowed: debug, info, warning, error.",
        "nonsense: there is no such setting; docs/settings.md lists them.",
        "poll_seconds: it has to be a number.",
        "web_port: it has to be at most 65535.",
        "web_url: it has another form than it has to",
        "s3: it has to be a table.",
        "embedding.provider: it is 'abacus'; allowed: local, multilingual, openai, ollama.",
        "accounts.0.client_secret: it is missing.",
        "accounts.0.secret: there is no such setting",
        "concurrency.transfre: it is 'transfre'; allowed: ",
        "connections.0: interval is 'soon'; allowed: a duration",
        "notices.0.kind: it is 'pager'; allowed: smtp, teams, slack or webhook.",
    ):
        assert f"  {words}" in said
    for word in ("Extra inputs", "instance of", "Value error", "pattern", "a-secret-in-the-wrong"):
        assert word not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--config nope.toml status", "The settings file 'nope.toml' is not there. Name a file"),
        ("--config . status", "The settings file '.' is a folder. Name a file with --config"),
        ("--data taken init", "'taken' is a file, and a folder for data is wanted. Name another"),
    ],
)
def test_paths_that_are_none_are_told_by_what_was_typed(
    tmp_path: Path, words: str, said: str
) -> None:
    (tmp_path / "taken").touch()
    assert said in run_command(*words.split(), cwd=tmp_path, ok=[3]).stderr


def test_a_day_is_asked_for_as_people_write_it(tmp_path: Path) -> None:
    add = ("account", "add", "office", f"--client-id={APP}", "--expires", "tomorrow")
    said = run_command("--data", "data", *add, cwd=tmp_path, ok=[2]).stderr
    assert "it is 'tomorrow'; allowed: a day such as 2027-01-31." in said


def test_an_examination_makes_nothing(tmp_path: Path) -> None:
    done = run_command("doctor", cwd=tmp_path)
    assert "The folder 'drivefeed-data/objects' is made at the first start" in done.stdout
    assert list(tmp_path.iterdir()) == []
