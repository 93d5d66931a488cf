"""What is known of models that services run: dimension, longest text, prefixes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.embed_naming import in_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.indexer.embed_naming import Naming

LONGEST_CHUNK: Final = 400
"""Tokens; a longer text makes a blurred vector, whatever the model could take."""
_UNKNOWN_TOKENS: Final = 256
_SHARE: Final = 0.8
"""Of a model's longest text, what a chunk may have: the rest is for marks, the prefix, and an
estimate of tokens that is a little short."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model as a service runs it.

    Attributes:
        name: as the service calls it.
        dimension: numbers in a vector.
        tokens: the most tokens of one text, marks and prefix included.
        query_prefix: what the model was trained to see in front of queries.
        document_prefix: the same for documents.
    """

    name: str
    dimension: int
    tokens: int
    query_prefix: str = ""
    document_prefix: str = ""

    @property
    def chunk_tokens(self) -> int:
        """The most tokens of a chunk."""
        return min(LONGEST_CHUNK, int(self.tokens * _SHARE))


def _e5(name: str, dimension: int) -> Model:
    return Model(name, dimension, 512, "query: ", "passage: ")


_KNOWN: Final[Mapping[str, Model]] = {
    model.name: model
    for model in (
        Model("text-embedding-3-small", 1536, 8191),
        Model("text-embedding-3-large", 3072, 8191),
        Model("text-embedding-ada-002", 1536, 8191),
        Model("all-minilm", 384, 256),
        Model("bge-m3", 1024, 8192),
        Model("snowflake-arctic-embed2", 1024, 8192, "query: "),
        Model("nomic-embed-text", 768, 2048, "search_query: ", "search_document: "),
        Model(
            "mxbai-embed-large",
            1024,
            512,
            "Represent this sentence for searching relevant passages: ",
        ),
        _e5("multilingual-e5-small", 384),
        _e5("multilingual-e5-base", 768),
        _e5("multilingual-e5-large", 1024),
    )
}


def describe_model(
    name: str,
    *,
    dimension: int | None = None,
    tokens: int | None = None,
    query_prefix: str | None = None,
    document_prefix: str | None = None,
    naming: Naming = in_settings,
) -> Model:
    """Return what is known of a model; what the settings say wins.

    An organization in front of the name (``intfloat/…``) and a tag behind it (``…:latest``) make
    no difference.

    Raises:
        NeedsAttention: the dimension is neither known nor said.
    """
    bare = name.rpartition("/")[2].partition(":")[0].lower()
    known = _KNOWN.get(bare)
    wide = dimension or (known.dimension if known else None)
    if wide is None:
        raise NeedsAttention(
            f"How many numbers a vector of the embedding model '{name}' has is not known. Say it "
            f"as {naming('dimension')}.",
            reason=Reason.MISCONFIGURED,
        )
    return Model(
        name=name,
        dimension=wide,
        tokens=tokens or (known.tokens if known else _UNKNOWN_TOKENS),
        query_prefix=_first(query_prefix, known.query_prefix if known else ""),
        document_prefix=_first(document_prefix, known.document_prefix if known else ""),
    )


def _first(said: str | None, known: str) -> str:
    return known if said is None else said
