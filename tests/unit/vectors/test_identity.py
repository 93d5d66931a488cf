from pathlib import Path

import pytest

from drivefeed.domain.errors import NeedsAttention
from drivefeed.indexer.vectors import identity
from drivefeed.indexer.vectors.identity import Identity

MADE_FOR = Identity(model="m", dimension=4)


def test_it_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "identity.json"
    assert identity.read(path) is None
    identity.write(path, MADE_FOR)
    stored = identity.read(path)
    assert stored == MADE_FOR.as_mapping()
    MADE_FOR.require(stored, "here")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", ["", "{", "[]", "\x00"])
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "identity.json"
    path.write_text(content)
    with pytest.raises(NeedsAttention, match=r"identity\.json.*cannot be read"):
        identity.read(path)


@pytest.mark.parametrize(
    "changed",
    [
        {"provider": "ollama"},
        {"model": "other"},
        {"dimension": 5},
        {"sparse": "other"},
        {"schema": 2},
    ],
)
def test_every_difference_is_refused_and_named(changed: dict[str, object]) -> None:
    (name, value) = next(iter(changed.items()))
    with pytest.raises(NeedsAttention) as caught:
        MADE_FOR.require(MADE_FOR.as_mapping() | changed, "in /somewhere")
    assert f"{name} {value!r}" in str(caught.value)
    assert "/somewhere" in str(caught.value)


def test_another_model_is_told_by_all_that_names_it() -> None:
    with pytest.raises(NeedsAttention) as caught:
        Identity("text-embedding-3-small", 1536, "openai").require(MADE_FOR.as_mapping(), "here")
    words = str(caught.value)
    assert "made with model 'm', dimension 4, provider 'local'" in words
    assert "ask for model 'text-embedding-3-small', dimension 1536, provider 'openai'" in words
    assert "drivefeed reindex" in words


def test_an_index_of_before_there_were_providers_is_a_local_one() -> None:
    stored = MADE_FOR.as_mapping()
    del stored["provider"]
    MADE_FOR.require(stored, "here")
    with pytest.raises(NeedsAttention):
        Identity("m", 4, "ollama").require(stored, "here")
