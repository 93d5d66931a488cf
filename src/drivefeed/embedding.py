"""Embedders and collections as settings and catalog name them: which is in use, and how to open it.

Part of the bootstrap. The collection in use goes on with what it was made with, for as long as
that can be opened: models of this machine always, a service's while the settings name it. What
the settings ask for beyond that takes ``drivefeed reindex``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from drivefeed.catalog.collection_rows import Made
from drivefeed.catalog.collections import collections_of, remember_active
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.collection import Collection
from drivefeed.indexer.lending import Lending
from drivefeed.indexer.providers import HERE, EmbeddingChoice, open_embedder
from drivefeed.indexer.shelf import Shelf
from drivefeed.indexer.vectors import identity
from drivefeed.outward import outbound_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from drivefeed.catalog.engine import Catalog
    from drivefeed.indexer.embed_naming import Naming
    from drivefeed.ports import Embedder, VectorIndex
    from drivefeed.setting_sections import EmbeddingSettings
    from drivefeed.settings import Settings

EMBEDDED: Final = "embedded"
INDEX_FOLDER: Final = "index"
_CONNECT_SECONDS: Final = 10.0


def index_name(settings: Settings) -> str:
    """Return what the catalog calls the vector index of the settings."""
    return f"qdrant/{settings.collection}" if settings.qdrant_url else EMBEDDED


async def open_shelf(settings: Settings, catalog: Catalog, lending: Lending | None = None) -> Shelf:
    """Open the installation's collection in use, and the one that a reindex builds beside it.

    Nothing is asked of them yet. What organizations have of their own is opened by
    :mod:`drivefeed.embedding_of_orgs`.

    Args:
        lending: embedders that others may have too.

    Raises:
        NeedsAttention: the collection in use was made with a model that the settings do not name.
    """
    index = index_name(settings)
    known = await collections_of(catalog, index)
    if known.active is None:
        made = _found_on_disk(settings) or target_of(settings, catalog, None)
        known = await remember_active(catalog, index, made)
    assert known.active is not None
    lending = lending or open_lending(settings, catalog)
    shelf = Shelf(open_collection(settings, catalog, known.active, lending))
    if known.building is not None:
        shelf.building = _still_building(settings, catalog, known.building, lending)
    return shelf


def _still_building(
    settings: Settings, catalog: Catalog, made: Made, lending: Lending
) -> Collection:
    try:
        return open_collection(settings, catalog, made, lending)
    except NeedsAttention as error:
        raise NeedsAttention(
            f"A reindex to {made.words} is under way, and the settings do not name that model any "
            "more. Put it back, or give the reindex up with 'drivefeed reindex --cancel'.",
            reason=error.reason,
        ) from error


async def difference(settings: Settings, catalog: Catalog) -> str:
    """Return a sentence where the settings ask for another model than is in use; else nothing."""
    active = (await collections_of(catalog, index_name(settings))).active
    asked = target_of(settings, catalog, None)
    named = [target_of(settings, catalog, name) for name in settings.embeddings]
    if active is None or active.embedding in {one.embedding for one in (asked, *named)}:
        return ""
    return (
        f"The vector index was made with {active.words} and goes on with it, but the settings ask "
        f"for {asked.words}. 'drivefeed reindex' changes it; or go back to the former setting."
    )


def target_of(settings: Settings, catalog: Catalog, to: str | None) -> Made:
    """Return what a collection would be made with.

    Args:
        settings: name embeddings.
        catalog: has the clock.
        to: a name of ``embeddings``, or a provider of this machine; None for ``embedding``.

    Raises:
        NeedsAttention: there is none of that name, or it lacks something.
    """
    choices = dict(_choices(settings))
    choice = choices.get(to)
    if choice is None:
        named = ", ".join(sorted(name for name in choices if name))
        raise NeedsAttention(
            f"The settings name no embedding '{to}'; there are: {named}. A daemon that runs knows "
            "those that its settings had when it started.",
            reason=Reason.MISCONFIGURED,
        )
    return made_by(base_name(settings), open_one(settings, catalog, choice))


def base_name(settings: Settings) -> str:
    """Return what the names of all collections begin with."""
    return settings.collection if settings.qdrant_url else INDEX_FOLDER


def open_collection(
    settings: Settings, catalog: Catalog, made: Made, lending: Lending | None = None
) -> Collection:
    """Open a collection with the embedder that it was made with.

    Raises:
        NeedsAttention: the settings name no such embedder; the sentence names both.
    """
    for _, choice in _choices(settings):
        if choice.provider != made.provider or (choice.model or made.model) != made.model:
            continue
        embedder = open_one(settings, catalog, choice)
        if made_by(made.name, embedder).embedding == made.embedding:
            lent = lending.lend(choice) if lending is not None else embedder
            return Collection(made.name, lent, open_index(settings, made))
    asked = target_of(settings, catalog, None)
    raise NeedsAttention(
        f"The vector index was made with {made.words}, but the settings ask for {asked.words} and "
        "name the former nowhere. Put it back as 'embedding', keep the other one under "
        "'embeddings', and change with 'drivefeed reindex --to NAME' while search goes on.",
        reason=Reason.MISCONFIGURED,
    )


def open_index(settings: Settings, made: Made) -> VectorIndex:
    """Return a vector index of the settings: a Qdrant server's collection, or an embedded one."""
    if not settings.qdrant_url:
        from drivefeed.indexer.vectors.edge import EdgeIndex

        return EdgeIndex(
            settings.data_dir / made.name,
            model_name=made.model,
            dimension=made.dimension,
            provider=made.provider,
        )
    from drivefeed.indexer.vectors.server import ServerIndex

    key = settings.qdrant_api_key
    return ServerIndex(
        settings.qdrant_url,
        api_key=key.get_secret_value() if key else None,
        collection=made.name,
        model_name=made.model,
        dimension=made.dimension,
        provider=made.provider,
        outbound=outbound_of(settings),
    )


def _found_on_disk(settings: Settings) -> Made | None:
    """Return what an embedded index was made with before the catalog remembered it."""
    if settings.qdrant_url:
        return None
    stored = identity.read(settings.data_dir / INDEX_FOLDER / "identity.json")
    if stored is None:
        return None
    provider = stored.get("provider", identity.FIRST_PROVIDER)
    return Made(INDEX_FOLDER, provider, stored["model"], stored["dimension"])


def _choices(settings: Settings) -> Iterator[tuple[str | None, EmbeddingChoice]]:
    yield None, _choice(settings.embedding)
    for provider in sorted(HERE):
        yield provider, EmbeddingChoice(provider)
    for name, one in settings.embeddings.items():
        yield name, _choice(one)


def _choice(one: EmbeddingSettings) -> EmbeddingChoice:
    return EmbeddingChoice(
        provider=one.provider,
        model=one.model,
        base_url=one.base_url,
        api_key=one.api_key.get_secret_value() if one.api_key else None,
        dimension=one.dimension,
        max_tokens=one.max_tokens,
        query_prefix=one.query_prefix,
        document_prefix=one.document_prefix,
        shorten=one.shorten,
        batch=one.batch,
        timeout_seconds=one.timeout_seconds,
    )


def open_lending(settings: Settings, catalog: Catalog) -> Lending:
    """Return what lends embedders to all collections of a process."""
    return Lending(partial(open_one, settings, catalog))


def open_one(settings: Settings, catalog: Catalog, choice: EmbeddingChoice) -> Embedder:
    """Return an embedder; nothing is loaded, and nobody is asked, before its first use.

    Raises:
        NeedsAttention: the choice lacks something.
    """

    def open_client(seconds: float) -> httpx.AsyncClient:
        import httpx

        return httpx.AsyncClient(
            transport=outbound_of(settings).transport(),
            timeout=httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS)),
        )

    return open_embedder(
        choice,
        threads=settings.embedding_threads,
        clock=catalog.clock,
        open_client=open_client,
    )


def open_asked(
    settings: Settings, catalog: Catalog, one: EmbeddingSettings, naming: Naming
) -> Embedder:
    """Return the embedder that somebody asks to have in the settings; see :func:`open_one`."""
    return open_one(settings, catalog, replace(_choice(one), naming=naming))


def made_by(name: str, embedder: Embedder) -> Made:
    """Return what a collection of that name is made with."""
    return Made(name, embedder.provider, embedder.name, embedder.dimension)
