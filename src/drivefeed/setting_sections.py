"""Sections of the settings that say how a part does its work."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr


class Section(BaseModel):
    """A table of the settings file; names that it does not know are refused."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


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


def _database_url(given: SecretStr | None) -> SecretStr | None:
    url = given.get_secret_value() if given else ""
    # Other programs of the same platform may name their driver in it.
    url = url.replace("+asyncpg:", ":", 1)
    if url and not url.startswith(("sqlite:///", "postgresql://", "postgres://")):
        raise ValueError("It begins with postgresql:// or sqlite:///.")
    return SecretStr(url) if url else None


DatabaseUrl = Annotated[SecretStr | None, AfterValidator(_database_url)]


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
