"""``org embedding`` and ``reindex --org``, by commands alone, while no daemon runs."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from support.commands import run_command
from support.embeddings import KEY, EmbeddingService, embedding_service
from support.evidence import rows_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class Desk:
    """An installation with two organizations, to whom commands are typed."""

    def __init__(self, home: Path, service: EmbeddingService) -> None:
        self.home, self.service = home, service
        self.data = home / "data"
        self.data.mkdir()
        (self.data / "drivefeed.toml").write_text(
            f'[embedding]\nprovider = "ollama"\nmodel = "common"\nbase_url = "{service.url}"\n'
            f'api_key = "{KEY}"\ndimension = 64\n'
        )
        self.words("init", "--org", "ours")
        self.words("org", "add", "theirs")

    def words(self, *words: str, typed: str = "", ok: Sequence[int] = (0,)) -> str:
        with patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()))):
            done = run_command("--data", str(self.data), *words, cwd=self.home, ok=ok)
        return " ".join((done.stdout + done.stderr).split())

    def json(self, *words: str, typed: str = "") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.words(*words, "--json", typed=typed))
        return found

    def service_of(self, **more: Any) -> list[str]:
        options = {"model": "words", "base-url": f"{self.service.url}/v1", "dimension": 64} | more
        pairs = [(f"--{name}", str(value)) for name, value in options.items()]
        return ["--provider", "openai", *(word for pair in pairs for word in pair), "--key-stdin"]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with embedding_service() as service:
        yield Desk(tmp_path, service)


def test_a_choice_is_tried_told_and_put_in_use(desk: Desk) -> None:
    assert "will begin in the installation's collection" in desk.words("org", "embedding", "ours")
    # Without documents there is a collection all the same, once somebody reindexed.
    said = desk.words("org", "embedding", "ours", *desk.service_of(), "--plan", typed=KEY)
    assert "This asks for 'words' (openai, 64 numbers)" in said
    assert "0 documents would be embedded again" in said
    assert desk.json("org", "embedding", "ours")["wanted"] is None

    chosen = desk.json("org", "embedding", "ours", *desk.service_of(), typed=KEY)
    assert (chosen["wanted"]["model"], chosen["wanted"]["has_key"]) == ("words", True)
    assert (chosen["needs_reindex"], chosen["own_collection"]) == (True, False)
    done = desk.json("reindex", "--org", "ours")
    name = f"index-org-{chosen['org_id']}-1"
    assert (done["state"], done["collection"]) == ("idle", name)
    shown = desk.json("org", "embedding", "ours")
    assert shown["active"] == {
        "collection": name,
        "provider": "openai",
        "model": "words",
        "dimension": 64,
        "distance": "cosine",
    }
    assert not shown["needs_reindex"]
    assert not desk.json("org", "embedding", "theirs")["own_collection"]
    assert "made with 'words' (openai, 64 numbers) already" in desk.words(
        "reindex", "--org", "ours", ok=(3,)
    )

    # And back.
    assert "asks for the installation's embedding" in desk.words(
        "org", "embedding", "ours", "--installation"
    )
    assert desk.json("reindex", "--org", "ours")["collection"] == "index"
    assert not desk.json("org", "embedding", "ours")["own_collection"]
    kept = rows_in(desk.data, "SELECT sealed FROM org_embeddings")
    assert kept == []
    assert "Choose an embedding for it" in desk.words("reindex", "--org", "ours", ok=(3,))


def test_what_cannot_work_is_refused_and_not_remembered(desk: Desk) -> None:
    ours = ("org", "embedding", "ours")
    service = desk.service_of
    refusals = {
        "Check --key-file or --key-stdin.": desk.words(
            *ours, *service(), typed="wrong-key", ok=(3,)
        ),
        "but 63 are expected. Correct --model or --dimension.": desk.words(
            *ours, *service(dimension=63), typed=KEY, ok=(3,)
        ),
        "did not answer": desk.words(
            *ours, *service(**{"base-url": "http://127.0.0.1:9/v1"}), typed=KEY, ok=(3,)
        ),
        "is not known. Say it as --dimension.": desk.words(
            *ours, "--provider", "openai", "--model", "unheard-of", ok=(3,)
        ),
        "needs the name of a model. Say it as --model.": desk.words(
            *ours, "--provider", "openai", ok=(3,)
        ),
        "may hold no user, password or query": desk.words(
            *ours, *service(**{"base-url": "http://a:b@127.0.0.1/v1"}), typed=KEY, ok=(2,)
        ),
        "Check --base-url or --model.": desk.words(
            *ours, *service(model="absent"), typed=KEY, ok=(3,)
        ),
        "begins with http:// or https://": desk.words(
            *ours, *service(**{"base-url": "ftp://host"}), typed=KEY, ok=(2,)
        ),
        "Name a provider": desk.words(*ours, "--dimension", "3", ok=(2,)),
        "--provider": desk.words(*ours, "--provider", "other", ok=(2,)),
        "The key is empty": desk.words(*ours, *service(), typed="\n", ok=(2,)),
        "goes with no other choice": desk.words(
            *ours, "--installation", "--provider", "local", ok=(2,)
        ),
        "no organization called 'nobody'": desk.words("org", "embedding", "nobody", ok=(3,)),
        "--to is for the installation's": desk.words(
            "reindex", "--org", "ours", "--to", "local", ok=(2,)
        ),
    }
    for expected, said in refusals.items():
        assert expected in said, said
        assert "wrong-key" not in said
        assert KEY not in said
    assert desk.json(*ours)["wanted"] is None
    assert rows_in(desk.data, "SELECT id FROM org_embeddings") == []


def test_a_key_that_cannot_be_opened_keeps_its_own_organization_only(desk: Desk) -> None:
    desk.words("org", "embedding", "ours", *desk.service_of(), typed=KEY)
    desk.words("reindex", "--org", "ours")
    (desk.data / "secret.key").rename(desk.data / "secret.gone")
    told = desk.words("search", "orchard", "--org", "ours", ok=(3,))
    assert "sealed with key" in told or "secret.key" in told
    assert "Nothing found" in desk.words("search", "orchard", "--org", "theirs", ok=(1,))
