"""Which collection is opened with which model, by what catalog, folder and settings say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog.collections import (
    Made,
    begin_building,
    collections_of,
    give_up_building,
)
from drivefeed.catalog.engine import open_catalog
from drivefeed.domain.errors import NeedsAttention
from drivefeed.embedding import EMBEDDED, difference, open_shelf, target_of
from drivefeed.settings import load_settings
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.catalog.engine import Catalog
    from drivefeed.settings import Settings

OLLAMA = {"provider": "ollama", "model": "bge-m3"}
LOCAL = ("local", "all-MiniLM-L6-v2-int8", 384)


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[Catalog]:
    whole = await open_catalog(
        new_catalog(tmp_path / "catalog.db"),
        clock=ManualClock(),
        ids=CountedIds(),
        checkpoint=no_checkpoint,
    )
    yield whole
    await whole.aclose()


def settings(tmp_path: Path, **more: Any) -> Settings:
    return load_settings(data_dir=tmp_path / "data", **more)


async def used(wanted: Settings, catalog: Catalog) -> tuple[str, str, str]:
    """Open the shelf; return name, provider and model of what is in use."""
    shelf = await open_shelf(wanted, catalog)
    one = shelf.current
    await shelf.aclose()
    return one.name, one.embedder.provider, one.embedder.name


async def test_a_new_installation_begins_with_what_the_settings_say(
    tmp_path: Path, catalog: Catalog
) -> None:
    wanted = settings(tmp_path, embedding=OLLAMA)
    assert await used(wanted, catalog) == ("index", "ollama", "bge-m3")
    known = await collections_of(catalog, EMBEDDED)
    assert known.active == Made("index", "ollama", "bge-m3", 1024)
    assert await difference(wanted, catalog) == ""
    on_server = settings(tmp_path, embedding=OLLAMA, qdrant_url="http://127.0.0.1:9")
    assert await used(on_server, catalog) == ("drivefeed", "ollama", "bge-m3")


async def test_an_index_of_an_older_version_goes_on(tmp_path: Path, catalog: Catalog) -> None:
    folder = tmp_path / "data" / "index"
    folder.mkdir(parents=True)
    (folder / "identity.json").write_text(json.dumps({"model": LOCAL[1], "dimension": 384}))
    assert await used(settings(tmp_path, embedding=OLLAMA), catalog) == ("index", *LOCAL[:2])


async def test_other_settings_are_told_and_change_nothing(tmp_path: Path, catalog: Catalog) -> None:
    await used(settings(tmp_path), catalog)
    wanted = settings(tmp_path, embedding={"provider": "multilingual"})
    assert await used(wanted, catalog) == ("index", *LOCAL[:2])
    words = await difference(wanted, catalog)
    assert "made with 'all-MiniLM-L6-v2-int8' (local, 384 numbers)" in words
    assert "'universal-sentence-encoder-multilingual-3' (multilingual, 512 numbers)" in words
    assert "drivefeed reindex" in words


async def test_a_service_that_the_settings_do_not_name_any_more_is_missed(
    tmp_path: Path, catalog: Catalog
) -> None:
    await used(settings(tmp_path, embedding=OLLAMA), catalog)
    with pytest.raises(NeedsAttention) as caught:
        await used(settings(tmp_path), catalog)
    words = str(caught.value)
    assert "'bge-m3' (ollama, 1024 numbers)" in words
    assert "'all-MiniLM-L6-v2-int8' (local, 384 numbers)" in words
    assert "drivefeed reindex" in words
    beside = settings(tmp_path, embeddings={"former": OLLAMA})
    assert await used(beside, catalog) == ("index", "ollama", "bge-m3")
    assert await difference(beside, catalog) == ""


async def test_what_is_being_built_needs_its_model_or_is_given_up(
    tmp_path: Path, catalog: Catalog
) -> None:
    named = settings(tmp_path, embeddings={"big": OLLAMA})
    await used(named, catalog)
    await begin_building(catalog, EMBEDDED, target_of(named, catalog, "big"), leave_out=False)
    shelf = await open_shelf(named, catalog)
    assert shelf.building is not None
    assert shelf.building.name == "index-2"
    await shelf.aclose()
    with pytest.raises(NeedsAttention, match="reindex --cancel"):
        await open_shelf(settings(tmp_path), catalog)
    assert (await give_up_building(catalog, EMBEDDED)).old == ("index-2",)
    assert await used(settings(tmp_path), catalog) == ("index", *LOCAL[:2])


async def test_a_name_that_is_nowhere_is_said(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(NeedsAttention, match="no embedding 'big'; there are: local, multilingual"):
        target_of(settings(tmp_path), catalog, "big")
