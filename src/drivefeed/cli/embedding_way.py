"""How an embedding is named to commands: its options, its key, and a try at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer

from drivefeed.cli.account_way import read_hidden, read_secret_file
from drivefeed.domain.redact import hide
from drivefeed.indexer.providers import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from drivefeed.indexer.embed_naming import Naming
    from drivefeed.ports import Embedder


def typed_as(names: Mapping[str, str]) -> Naming:
    """Return what calls fields by the options that give them.

    Args:
        names: how an option is typed that is not called like its field.
    """

    def naming(*fields: str) -> str:
        return " or ".join(names.get(one, "--" + one.replace("_", "-")) for one in fields)

    return naming


def check_fields(fields: Mapping[str, Any], naming: Naming) -> None:
    """Refuse what cannot be, before anybody is asked.

    Args:
        fields: by their names in the settings.
        naming: calls them as they are typed.

    Raises:
        typer.BadParameter: naming the option.
    """
    from pydantic import ValidationError

    from drivefeed.setting_sections import EmbeddingSettings

    try:
        EmbeddingSettings(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        if field == "provider":
            *others, last = PROVIDERS
            words = f"is one of {', '.join(others)} or {last}."
            raise typer.BadParameter(f"{naming(field)} {words}") from None
        raise typer.BadParameter(f"{naming(field)}: {first['msg']}.") from None
    url = fields.get("base_url", "")
    if not url:
        return
    option = naming("base_url")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise typer.BadParameter(f"{option} begins with http:// or https:// and names a host.")
    if parts.username or parts.password or parts.query:
        raise typer.BadParameter(
            f"{option} is shown and logged, so it may hold no user, password or query; give a key "
            f"with {naming('api_key')}."
        )


def read_key(key_file: Path | None, *, stdin: bool) -> str | None:
    """Read a service's key, which is shown nowhere from now on; None where none is given."""
    if key_file is not None:
        key = read_secret_file(key_file, "key file")
    elif stdin:
        key = read_hidden("API key")
    else:
        return None
    if not key or any(one.isspace() for one in key):
        raise typer.BadParameter("The key is empty, or has blanks or line breaks in it.")
    hide(key)
    return key


async def try_embedder(embedder: Embedder) -> None:
    """Have it embed a word, so that a wrong key, model or dimension is told before it counts.

    Raises:
        PartDown, NeedsAttention, Throttled, Transient: with a sentence that says what is wrong.
    """
    try:
        await embedder.check()
    finally:
        await embedder.aclose()
