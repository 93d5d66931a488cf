"""``init`` and what embeds the documents: named or asked for, tried at once, and written down."""

from __future__ import annotations

import io
import json
import stat
import sys
import tomllib
from contextlib import closing
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from integration.cli.conftest import CommandLine
from integration.cli.terminal import Terminal
from support.commands import run_command, said_in_frame
from support.embeddings import KEY, EmbeddingService, Fault, embedding_service

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with embedding_service() as running:
        yield running


class Home:
    """A folder in which ``init`` is typed, without ``--data``: the folder is the settings' own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings = folder / "drivefeed-data" / "drivefeed.toml"

    def init(self, *words: str, typed: str = "", ok: Sequence[int] = (0,)) -> str:
        with patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()))):
            done = run_command("init", *words, cwd=self.folder, ok=ok)
        # Of boxes around what was not understood, only the words count.
        return said_in_frame(done.stdout + done.stderr)

    @property
    def written(self) -> dict[str, Any]:
        return tomllib.loads(self.settings.read_text(encoding="utf-8"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def service_words(service: EmbeddingService, **more: object) -> list[str]:
    given = {"model": "words", "url": f"{service.url}/v1", "dimension": 64} | more
    options = [(f"--embedding-{name}", str(value)) for name, value in given.items()]
    return ["--embedding", "openai", *(word for pair in options for word in pair)]


def test_without_a_word_it_is_the_model_of_this_machine_for_english(home: Home) -> None:
    assert "Embedding local" in home.init()
    assert not home.settings.exists()
    assert json.loads(home.init("--json"))["embedding"] == "local"


def test_a_service_is_tried_and_written_with_its_key_for_its_owner_alone(
    home: Home, service: EmbeddingService
) -> None:
    said = home.init(*service_words(service), "--embedding-key-stdin", typed=KEY)
    assert "Embedding openai, words, written to drivefeed-data/drivefeed.toml" in said
    assert KEY not in said
    assert len(service.texts) == 1
    assert home.written["embedding"] == {
        "provider": "openai",
        "model": "words",
        "base_url": f"{service.url}/v1",
        "dimension": 64,
        "api_key": KEY,
    }
    assert stat.S_IMODE(home.settings.stat().st_mode) == 0o600
    # What is written counts from the next command on, and the same once more changes nothing.
    assert json.loads(home.init("--json"))["embedding"] == "openai, words"
    again = home.init(*service_words(service), "--embedding-key-stdin", typed=KEY)
    assert "written" not in again
    # Another one is a person's to change, in the file in which it stands.
    other = home.init("--embedding", "multilingual", ok=(3,))
    assert "name an embedding already (openai, words, in 'drivefeed-data/drivefeed.toml'" in other
    assert home.written["embedding"]["provider"] == "openai"


def test_what_stands_in_the_settings_stays(home: Home) -> None:
    home.settings.parent.mkdir()
    before = "# ours\npoll_seconds = 30\n\n[[notices]]\nname = 'desk'\nkind = 'webhook'\n"
    before += "url = 'http://127.0.0.1:9/x'\n"
    home.settings.write_text(before)
    home.settings.chmod(0o640)
    home.init("--embedding", "multilingual")
    text = home.settings.read_text()
    assert text == f'{before}\n[embedding]\nprovider = "multilingual"\n'
    assert stat.S_IMODE(home.settings.stat().st_mode) == 0o640
    assert "Embedding multilingual" in home.init()


def test_a_table_without_effect_is_not_written_a_second_time(home: Home) -> None:
    home.settings.parent.mkdir()
    home.settings.write_text("[embedding]\nbatch = 32\n")
    assert "name an embedding already" in home.init("--embedding", "multilingual", ok=(3,))
    assert home.settings.read_text() == "[embedding]\nbatch = 32\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--embedding", "best"], "--embedding is one of local, multilingual, openai or ollama."),
        (["--embedding-model", "words"], "Name a provider with --embedding."),
        (["--embedding", "ollama"], "Name the model of ollama with --embedding-model."),
        (["--embedding", "local", "--embedding-model", "m"], "local runs on this machine"),
        (["--embedding", "multilingual", "--embedding-key-stdin"], "takes no model, address"),
        (
            ["--embedding", "openai", "--embedding-model", "m", "--embedding-url", "here"],
            "--embedding-url begins with http:// or https://",
        ),
        (
            ["--embedding", "openai", "--embedding-model", "m", "--embedding-url", "http://u:p@h"],
            "with --embedding-key-file or --embedding-key-stdin",
        ),
        (
            ["--embedding", "openai", "--embedding-model", "m", "--embedding-dimension", "0"],
            "--embedding-dimension: ",
        ),
    ],
)
def test_what_cannot_be_is_told_at_once_and_makes_nothing(
    home: Home, words: list[str], sentence: str
) -> None:
    assert sentence in home.init(*words, ok=(2,))
    assert not home.settings.exists()


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (Fault(status=401), "Check --embedding-key-file or --embedding-key-stdin."),
        (Fault(dimension=32), "Correct --embedding-model or --embedding-dimension."),
        (Fault(status=404), "Check --embedding-url or --embedding-model."),
    ],
)
def test_a_service_that_does_not_do_is_told_by_the_options_and_not_written(
    home: Home, service: EmbeddingService, fault: Fault, sentence: str
) -> None:
    service.faults = [fault]
    said = home.init(*service_words(service), "--embedding-key-stdin", typed=KEY, ok=(3,))
    assert sentence in said
    assert KEY not in said
    assert "settings" not in said
    assert not home.settings.exists()


def test_a_model_that_nobody_knows_asks_for_its_dimension_by_the_option(home: Home) -> None:
    said = home.init("--embedding", "ollama", "--embedding-model", "unheard-of", ok=(3,))
    assert "is not known. Say it as --embedding-dimension." in said
    assert not home.settings.exists()


def test_a_new_installation_asks_on_a_terminal_and_an_old_one_does_not(
    tmp_path: Path, service: EmbeddingService
) -> None:
    command = CommandLine(tmp_path)
    service.key, service.dimension = None, 1024
    with closing(Terminal(command.start, "init")) as terminal:
        at = terminal.wait_for(r"Embedding \[local\]")
        assert "multilingual  on this machine" in terminal.seen
        for answer, question in (
            ("best", r"Embedding \[local\]"),
            ("ollama", "Model"),
            ("bge-m3", "Address"),
            (service.url, "want a key"),
            ("n", "Embedding +ollama, bge-m3, written"),
        ):
            terminal.press(f"{answer}\n")
            at = terminal.wait_for(question, since=at)
        assert terminal.wait_until_ended() == 0
    with closing(Terminal(command.start, "init")) as again:
        again.wait_for("Next:")
        assert again.wait_until_ended() == 0
        assert "What embeds" not in again.seen
