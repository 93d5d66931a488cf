"""Sections of the settings that say how a part does its work."""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003 (pydantic reads it when the class is made)
from typing import TYPE_CHECKING, Annotated, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    model_validator,
)

from drivefeed.domain.names import is_like_secret
from drivefeed.domain.policy_options import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEAST_SECRET = 16
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


def _no_secret(text: str) -> str:
    if is_like_secret(text):
        raise ValueError("it looks like a secret, and what stands here is shown and logged")
    return text


Shown = Annotated[str, AfterValidator(_no_secret)]
"""A name or an id that is shown to everybody."""


class Section(BaseModel):
    """A table of the settings file; names that it does not know are refused."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, allow_inf_nan=False)


class S3Settings(Section):
    """Where documents are kept, if not in the data folder."""

    bucket: str = Field(description="The bucket; it must exist.")
    endpoint_url: str | None = Field(
        default=None, description="The service, if it is not Amazon's own."
    )
    region: str | None = Field(default=None, description="The region, if the environment has none.")
    access_key: SecretStr | None = Field(
        default=None, description="Empty to use the machine's own credentials."
    )
    secret_key: SecretStr | None = Field(default=None, description="Goes with the access key.")
    prefix: str = Field(default="", description="Comes before all keys of ours.")


class BackendSettings(Section):
    """An ingestion backend behind the published contract, by its name in [backends]."""

    url: Annotated[str, Field(pattern=r"^https?://[^/?#\s]+(/[^?#\s]*)?$")] = Field(
        description="Where it is: what comes before /v1."
    )
    secret: SecretStr = Field(description="The secret that it shares with drivefeed.")
    auth: Annotated[str, Field(pattern="^(hmac|bearer)$")] = Field(
        default="hmac", description="hmac signs each request; bearer sends the secret itself."
    )
    content: Annotated[str, Field(pattern="^(url|store_key)$")] = Field(
        default="url",
        description="What it is given of a file: url (made fresh for it; needs S3), or store_key, "
        "for a backend that reads the store.",
    )
    url_seconds: Annotated[int, Field(ge=60, le=7 * 86_400)] = Field(
        default=3600, description="How long such a URL is good."
    )
    timeout_seconds: Annotated[float, Field(gt=0, le=600)] = Field(
        default=30.0, description="For one request, from its first to its last byte."
    )
    calls: bool = Field(
        default=False,
        description="Whether it is told an address of the status page where it may say that a job "
        "ended; needs web_url.",
    )
    usage_owner: Annotated[str, Field(pattern="^(drivefeed|backend)$")] = Field(
        default="drivefeed",
        description="Who keeps the books of pages: drivefeed counts and holds to the limits, or "
        "the backend does and its counts are copied.",
    )
    ca_file: Path | None = Field(
        default=None, description="PEM file with certificates to trust too."
    )

    @model_validator(mode="after")
    def _keeps_its_secret(self) -> Self:
        """Refuse what would let everybody on the way read the secret."""
        host = urlsplit(self.url).hostname or ""
        is_here = host in {"localhost", "::1"} or host.startswith("127.")
        if self.auth == "bearer" and self.url.startswith("http:") and not is_here:
            raise ValueError(
                "it would send its secret without TLS; use an https url, or auth = 'hmac' in a "
                "network that you trust"
            )
        if len(self.secret.get_secret_value()) < _LEAST_SECRET:
            raise ValueError(f"its secret needs at least {_LEAST_SECRET} characters")
        return self


def require_backends(
    backends: Mapping[str, BackendSettings], named: Mapping[str, str], *, web_url: str
) -> None:
    """Refuse names that cannot be, and connections that name a backend that is not there.

    Args:
        named: by connection, what its policy names.
    """
    for name, one in backends.items():
        if name == EMBEDDED or not _NAME.fullmatch(name):
            raise ValueError(
                f"[backends.{name}] is no name for a backend: small letters, digits, - and _ are, "
                f"and {EMBEDDED} is the name of our own"
            )
        if one.calls and not web_url:
            raise ValueError(f"[backends.{name}] has calls = true, and there is no web_url to call")
    for connection, name in named.items():
        if name not in {EMBEDDED, *backends}:
            raise ValueError(
                f"the connection of '{connection}' names the backend '{name}', and there is no "
                f"[backends.{name}]"
            )


class DatabaseSettings(Section):
    """What one process may use of a Postgres; SQLite heeds none of it."""

    connections: Annotated[int, Field(ge=2, le=200)] = Field(
        default=10, description="Most connections of one process to Postgres."
    )
    connect_seconds: Annotated[float, Field(gt=0)] = Field(
        default=10.0, description="How long to wait for a connection."
    )
    statement_seconds: Annotated[float, Field(gt=0)] = Field(
        default=30.0, description="How long one statement may take, waiting for others included."
    )
    idle_seconds: Annotated[float, Field(gt=0)] = Field(
        default=60.0, description="How long a transaction may stand still before it is ended."
    )
    prepared_statements: bool = Field(
        default=False,
        description="Keep statements prepared on a connection: faster, but not behind a pgbouncer "
        "that pools transactions.",
    )


class EmbeddingSettings(Section):
    """An embedding model, and who runs it."""

    provider: Annotated[str, Field(pattern="^(local|multilingual|openai|ollama)$")] = Field(
        default="local",
        description="local, multilingual (both in this process), openai (any service with "
        "OpenAI's API) or ollama.",
    )
    model: str = Field(default="", description="The model's name at a service.")
    base_url: str = Field(default="", description="The service, if not at its usual address.")
    api_key: SecretStr | None = Field(default=None, description="For services that want one.")
    dimension: Annotated[int, Field(ge=1, le=65_536)] | None = Field(
        default=None, description="Numbers in a vector; needed for models drivefeed does not know."
    )
    max_tokens: Annotated[int, Field(ge=32)] | None = Field(
        default=None, description="Most tokens of a text, where not what is known of the model."
    )
    query_prefix: str | None = Field(
        default=None, description="In front of queries, where not what is known of the model."
    )
    document_prefix: str | None = Field(default=None, description="The same for documents.")
    shorten: bool = Field(
        default=False, description="Ask the service for vectors of just that dimension (openai)."
    )
    batch: Annotated[int, Field(ge=1, le=2048)] = Field(
        default=32, description="Most texts of a request to a service."
    )
    timeout_seconds: Annotated[float, Field(gt=0)] = Field(
        default=60.0, description="For one request to a service."
    )


class ExtractionSettings(Section):
    """What reading the text of one file may use."""

    processes: Annotated[int, Field(ge=1, le=16)] = Field(
        default=2, description="How many files are read at a time."
    )
    memory_mb: Annotated[int, Field(ge=128)] = Field(
        default=1024, description="Memory of one reading process."
    )
    cpu_seconds: Annotated[int, Field(ge=1)] = Field(
        default=60, description="Computing time for one file."
    )
    wall_seconds: Annotated[float, Field(gt=0)] = Field(
        default=120.0, description="Time on the clock for one file."
    )
    max_chunks: Annotated[int, Field(ge=1)] = Field(
        default=5_000, description="Files with more chunks are refused."
    )
    ocr: bool = Field(
        default=False,
        description="Read scanned pages and pictures by OCR; needs the extra ocr and 1 GB more.",
    )
    ocr_pages: Annotated[int, Field(ge=1)] = Field(
        default=50, description="Pages of one file that are read by OCR; further ones are left out."
    )
    ocr_page_seconds: Annotated[float, Field(ge=1)] = Field(
        default=60.0, description="Time that a page for OCR adds to the two limits of time."
    )
