"""``init`` as it is typed; see :mod:`drivefeed.cli.commands`."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads the annotations
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]


def init(
    *,
    org: Annotated[str, typer.Option(help="The first organization.")] = "default",
    embedding: Annotated[
        str | None,
        typer.Option(
            "--embedding",
            help="What embeds the documents: local (English; the default), multilingual, openai "
            "(any service with OpenAI's API) or ollama.",
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--embedding-model", help="The model's name at a service.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option("--embedding-url", help="The service, if not at its usual address."),
    ] = None,
    dimension: Annotated[
        int | None,
        typer.Option(
            "--embedding-dimension", help="Numbers in a vector, for a model that is not known."
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option("--embedding-key-file", help="A file with the service's key."),
    ] = None,
    key_stdin: Annotated[
        bool,
        typer.Option("--embedding-key-stdin", help="Read the service's key from standard input."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Make the data folder, the catalog, the secret key and the first organization.

    An embedding that is named is tried at once, and written to the settings. On a terminal, a new
    installation asks for one.
    """
    from drivefeed.cli.init import initialise
    from drivefeed.cli.init_embedding import EmbeddingAsked

    given = {"provider": embedding, "model": model, "base_url": url, "dimension": dimension}
    fields = {name: value for name, value in given.items() if value is not None}
    initialise(org, EmbeddingAsked(fields, key_file, key_stdin), as_json=as_json)
