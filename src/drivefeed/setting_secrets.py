"""Which of the settings are secrets: by their type, wherever they are nested."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, SecretStr

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_OPEN_PATH = 3


def secrets_in(value: object) -> Iterator[str]:
    """Yield the text of every secret in settings, whatever it is nested in.

    Of a URL its password, or the path that is one, is yielded by itself as well.
    """
    if isinstance(value, SecretStr):
        yield from _secrets_of(value.get_secret_value())
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from secrets_in(getattr(value, name))
    elif isinstance(value, dict):
        for one in value.values():
            yield from secrets_in(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from secrets_in(one)


def _secrets_of(text: str) -> Iterator[str]:
    with suppress(ValueError):
        parts = urlsplit(text)
        if parts.scheme == "sqlite":
            return  # a file's path
        if parts.password:
            yield unquote(parts.password)
        elif parts.netloc and len(parts.path) <= _LONGEST_OPEN_PATH and not parts.query:
            return  # a server's address such as redis://redis:6379/0
        elif parts.netloc:
            yield parts.path.strip("/")
    yield text
