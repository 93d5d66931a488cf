"""Sections of the settings that say how a part does its work."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from drivefeed.domain.names import is_like_secret


def _no_secret(text: str) -> str:
    if is_like_secret(text):
        raise ValueError("it looks like a secret, and what stands here is shown and logged")
    return text


Shown = Annotated[str, AfterValidator(_no_secret)]
"""A name or an id that is shown to everybody."""


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
