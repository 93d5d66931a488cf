"""Addresses of parts that run elsewhere, as settings name them; what is wrong is not repeated."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, SecretStr

_ESCAPED: Final = "A #, ?, / or @ within a password is written as %23, %3F, %2F or %40."


def _database_url(given: SecretStr | None) -> SecretStr | None:
    url = given.get_secret_value() if given else ""
    # Other programs of the same platform may name their driver in it.
    url = url.replace("+asyncpg:", ":", 1)
    if url and not url.startswith(("sqlite:///", "postgresql://", "postgres://")):
        raise ValueError("It begins with postgresql:// or sqlite:///.")
    return SecretStr(url) if url else None


DatabaseUrl = Annotated[SecretStr | None, AfterValidator(_database_url)]


def _redis_url(given: SecretStr | None) -> SecretStr | None:
    url = given.get_secret_value() if given else ""
    if not url:
        return None
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("It begins with redis://, with rediss:// for TLS, or with unix://.")
    parts = _parts_of(url)
    number = parts.path.removeprefix("/")
    if parts.scheme != "unix" and number and not number.isdecimal():
        raise ValueError(f"Behind its host stands the number of a database, as in /0. {_ESCAPED}")
    return given


RedisUrl = Annotated[SecretStr | None, AfterValidator(_redis_url)]


def _http_url(url: str) -> str:
    if url and not url.startswith(("http://", "https://")):
        raise ValueError("It begins with http:// or https://.")
    if url:
        _parts_of(url)
    return url


HttpUrl = Annotated[str, AfterValidator(_http_url)]


def _parts_of(url: str) -> SplitResult:
    # The standard library repeats what it takes for a port, which may be half of a password.
    wrong = f"Its port is a number up to 65535. {_ESCAPED}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ValueError(wrong) from None
    if port == 0:
        raise ValueError(wrong)
    if parts.scheme != "unix" and not parts.hostname:
        raise ValueError("It names no host.")
    return parts
