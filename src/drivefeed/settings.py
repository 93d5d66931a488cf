"""Every knob, once: from a TOML file and the environment, all problems reported together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AliasChoices,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from drivefeed.domain.budget import Budget
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import hide
from drivefeed.ports import Stage  # noqa: TC001 (pydantic reads it when the class is made)
from drivefeed.setting_problems import problems_in, unreadable_variable
from drivefeed.setting_secrets import secrets_in
from drivefeed.setting_sections import (
    BackendSettings,
    DatabaseSettings,
    EmbeddingSettings,
    ExtractionSettings,
    S3Settings,
    require_backends,
)
from drivefeed.setting_urls import (  # noqa: TC001 - pydantic reads them
    DatabaseUrl,
    HttpUrl,
    RedisUrl,
)
from drivefeed.settings_folders import (
    AccountSettings,
    ConnectionSettings,
    TenantSettings,
)
from drivefeed.settings_keeping import (
    BacklogSettings,
    DiskSettings,
    ReconcileSettings,
    RetentionSettings,
)
from drivefeed.settings_outward import (
    Channels,
    NotificationSettings,
    OutboundSettings,
    WatchSettings,
)

CONFIG_VARIABLE = "DRIVEFEED_CONFIG"
PAGE_URL = r"https?://[^/?#@\\\s]+/?"
"""A web address without anything behind its host and port."""


class Settings(BaseSettings):
    """The whole configuration. Environment variables win over the file."""

    model_config = SettingsConfigDict(
        env_prefix="DRIVEFEED_",
        env_nested_delimiter="__",
        extra="forbid",
        populate_by_name=True,
        allow_inf_nan=False,
    )

    data_dir: Path = Field(default=Path("drivefeed-data"), description="Holds all embedded parts.")
    database_url: DatabaseUrl = Field(
        default=None,
        description="postgresql://user:password@host/name?sslmode=verify-full, with libpq's "
        "parameters, or sqlite:///…; empty for a file in the data folder.",
        validation_alias=AliasChoices("DRIVEFEED_DATABASE_URL", "DATABASE_URL", "database_url"),
    )
    database: DatabaseSettings = Field(
        default=DatabaseSettings(), description="What one process may use of a Postgres."
    )
    shared_objects: bool = Field(
        default=False,
        description="Whether all processes see the same data folder, so that objects may be kept "
        "in it although there are many.",
    )
    redis_url: RedisUrl = Field(
        default=None,
        description="Redis 6.2 or later, or Valkey; empty to start the embedded one.",
        validation_alias=AliasChoices("DRIVEFEED_REDIS_URL", "REDIS_URL", "redis_url"),
    )
    queue_prefix: str = Field(
        default="drivefeed", description="Keeps our keys apart in a shared Redis."
    )
    qdrant_url: HttpUrl = Field(
        default="",
        description="A Qdrant server; empty for the embedded index.",
        validation_alias=AliasChoices("DRIVEFEED_QDRANT_URL", "QDRANT_URL", "qdrant_url"),
    )
    qdrant_api_key: SecretStr | None = Field(
        default=None,
        description="Its API key.",
        validation_alias=AliasChoices(
            "DRIVEFEED_QDRANT_API_KEY", "QDRANT_API_KEY", "qdrant_api_key"
        ),
    )
    collection: str = Field(default="drivefeed", description="The collection in Qdrant.")
    s3: S3Settings | None = Field(
        default=None, description="An S3 bucket; empty for a folder in the data folder."
    )
    secret_key: SecretStr | None = Field(
        default=None,
        description="Keys that seal secrets in the catalog: 32 bytes in base64; the first seals.",
    )
    secret_key_file: Path | None = Field(
        default=None, description="A file with such keys; else secret.key in the data folder."
    )
    secret_key_command: str = Field(default="", description="A command that prints such keys.")
    accounts: list[AccountSettings] = Field(default=[], description="Sign-ins to Microsoft.")
    connections: list[ConnectionSettings] = Field(default=[], description="Folders to follow.")
    poll_seconds: Annotated[float, Field(ge=0.2)] = Field(
        default=60.0, description="How often a busy drive is asked for changes."
    )
    poll_slowest_seconds: Annotated[float, Field(ge=0.2)] = Field(
        default=300.0,
        description="How often a drive is asked in which nothing changed for hours; where a "
        "connection has an interval of its own, that one counts.",
    )
    notifications: NotificationSettings = Field(
        default=NotificationSettings(), description="Whether Microsoft tells us of changes."
    )
    backend_deadline_seconds: Annotated[float, Field(gt=0)] = Field(
        default=6 * 3600.0, description="After this time a backend that has not finished is late."
    )
    backends: dict[str, BackendSettings] = Field(
        default={}, description="Ingestion backends besides our own, by name."
    )
    ru_share: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.8, description="The part of Microsoft's resource units a minute that we spend."
    )
    ru_per_minute: Annotated[int, Field(gt=0)] = Field(
        default=1250, description="Resource units a minute that Microsoft grants this app."
    )
    ru_per_day: Annotated[int, Field(ge=0)] = Field(
        default=0, description="The same for 24 hours; 0 for what belongs to those of a minute."
    )
    tenants: dict[str, TenantSettings] = Field(
        default={},
        description="Larger tenants, by the id or domain that accounts name: Microsoft grants more "
        "there.",
    )
    concurrency: dict[Stage, Annotated[int, Field(ge=1)]] = Field(
        default={}, description="By stage, where not the default."
    )
    attempts: dict[Stage, Annotated[int, Field(ge=1)]] = Field(
        default={}, description="How often a step is tried, by stage, where not the default."
    )
    embedding: EmbeddingSettings = Field(
        default=EmbeddingSettings(),
        description="The model that makes documents searchable by meaning. Another one for an "
        "index that is there needs `drivefeed reindex`.",
    )
    embeddings: dict[str, EmbeddingSettings] = Field(
        default={}, description="Further ones, by name, for `drivefeed reindex --to`."
    )
    embedding_threads: Annotated[int, Field(ge=1)] = Field(
        default=2, description="Threads of a model in this process."
    )
    extraction: ExtractionSettings = Field(
        default=ExtractionSettings(), description="Limits for reading the text of one file."
    )
    web_port: Annotated[int, Field(ge=0, le=65535)] | None = Field(
        default=None, description="Where 'drivefeed up' serves the status page; empty for not."
    )
    web_host: str = Field(default="127.0.0.1", description="Where the status page is bound.")
    web_url: Annotated[str, Field(pattern=f"^({PAGE_URL})?$")] = Field(
        default="",
        description="Where people reach the status page, if that is another address: a proxy's.",
    )
    health_port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        default=None,
        description="Where a process serves /healthz, /readyz and /metrics; empty for its socket "
        "in the data folder, or any free port. Of several on one machine, each needs another one.",
    )
    health_host: str = Field(
        default="127.0.0.1", description="Where that port is bound; what it says is no secret."
    )
    notices: Channels = Field(default=[], description="Where notices go.")
    watch: WatchSettings = Field(default=WatchSettings(), description="What is worth a notice.")
    reconcile: ReconcileSettings = Field(
        default=ReconcileSettings(), description="How often drives are listed in full."
    )
    disk: DiskSettings = Field(default=DiskSettings(), description="How full the disks may get.")
    backlog: BacklogSettings = Field(
        default=BacklogSettings(), description="How much may wait to be indexed."
    )
    retention: RetentionSettings = Field(
        default=RetentionSettings(), description="How long the catalog keeps what is over."
    )
    outbound: OutboundSettings = Field(
        default=OutboundSettings(), description="Proxies and certificates of all outbound clients."
    )
    shutdown_seconds: Annotated[float, Field(ge=0)] = Field(
        default=20.0, description="How long running jobs may go on after SIGTERM."
    )
    log_json: bool = Field(default=False, description="One JSON object a line, for machines.")
    log_level: Annotated[str, Field(pattern="^(debug|info|warning|error)$")] = Field(
        default="info", description="debug, info, warning or error."
    )

    @model_validator(mode="after")
    def _check_backends(self) -> Self:
        named = {one.folder or one.drive_id: one.backend for one in self.connections}
        require_backends(self.backends, named, web_url=self.web_url)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments win over the environment, the environment over the TOML file."""
        del dotenv_settings, file_secret_settings
        path = os.environ.get(CONFIG_VARIABLE)
        toml = TomlConfigSettingsSource(settings_cls, path) if path else None
        return (init_settings, env_settings, *([toml] if toml else []))

    def model_post_init(self, _context: Any) -> None:
        """Take the plain S3_BUCKET, which many platforms set, as an S3 section."""
        bucket = os.environ.get("S3_BUCKET")
        if self.s3 is None and bucket:
            self.s3 = S3Settings(bucket=bucket, endpoint_url=os.environ.get("AWS_ENDPOINT_URL_S3"))

    def budget_of(self, tenant: str) -> Budget:
        """Return what this app may spend in a tenant, by its id or domain in any case."""
        named = {name.casefold(): one for name, one in self.tenants.items()}
        one = named.get(tenant.casefold(), TenantSettings())
        usual = Budget(self.ru_per_minute, self.ru_per_day)
        if one.licences is not None:
            usual = Budget.of_tenant(one.licences)
        minute = one.ru_per_minute or usual.minute
        # A day that belongs to another minute than the one that is used is none.
        usual_day = usual.day if minute == usual.minute else 0
        return Budget(minute, one.ru_per_day or usual_day, self.ru_share)

    @property
    def catalog_url(self) -> str:
        """The database's URL."""
        given = self.database_url.get_secret_value() if self.database_url else ""
        return given or f"sqlite:///{self.data_dir.absolute() / 'catalog.sqlite'}"

    @property
    def is_for_one_process(self) -> bool:
        """Whether a part lies in the data folder, where only one process can work on it."""
        is_sqlite = self.catalog_url.startswith("sqlite")
        return is_sqlite or self.s3 is None or not self.qdrant_url


def load_settings(**overrides: Any) -> Settings:
    """Read the settings.

    Raises:
        NeedsAttention: with one line for each thing that is wrong.
    """
    path = os.environ.get(CONFIG_VARIABLE)
    if path and not Path(path).is_file():
        what = "is a folder" if Path(path).is_dir() else "is not there"
        raise NeedsAttention(
            f"The settings file '{path}' {what}. Name a file with --config or {CONFIG_VARIABLE}.",
            reason=Reason.MISCONFIGURED,
        )
    try:
        settings = Settings(**overrides)
        hide(*secrets_in(settings))
        return settings
    except ValidationError as error:
        lines = "\n".join(f"  {one}" for one in problems_in(error))
        raise NeedsAttention(
            f"The settings cannot be used:\n{lines}", reason=Reason.MISCONFIGURED
        ) from None
    except ValueError as error:
        words = unreadable_variable(error) or f"The settings file '{path}' cannot be read: {error}"
        raise NeedsAttention(words, reason=Reason.MISCONFIGURED) from None
