"""Settings of who may read drives, and of the folders that should flow in."""

from __future__ import annotations

from datetime import date  # noqa: TC003 - pydantic reads the annotations
from pathlib import Path  # noqa: TC003 - pydantic reads the annotations
from typing import Annotated, Any, Self

from pydantic import Field, SecretStr, model_validator

from drivefeed.domain.policies import read_policy
from drivefeed.domain.policy_options import BY_NAME
from drivefeed.setting_sections import Section, Shown

_DAY_SECONDS = 24 * 3600


class AccountSettings(Section):
    """An app registration that may read drives (app-only)."""

    name: Shown = Field(description="What connections call this account.")
    org: Shown = Field(default="default", description="The organization that owns it.")
    tenant_id: Shown = Field(description="The tenant's id or one of its domains.")
    client_id: Shown = Field(description="The app registration's application (client) id.")
    client_secret: SecretStr = Field(description="One of its client secrets.")
    cloud: str = Field(default="global", description="global, us_l4, us_l5 or china.")
    authority: str | None = Field(
        default=None, description="Sign-in service, if not the cloud's own."
    )
    graph_url: str | None = Field(default=None, description="Graph, if not the cloud's own.")
    ca_file: Path | None = Field(
        default=None, description="PEM file with certificates to trust too."
    )


class TenantSettings(Section):
    """What Microsoft grants this app in one tenant; what is empty is as everywhere."""

    licences: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="How many licences the tenant has, from which Microsoft's limits follow.",
    )
    ru_per_minute: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="Resource units a minute, where it is known better."
    )
    ru_per_day: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="The same for 24 hours."
    )


class ConnectionSettings(Section):
    """A folder that should flow in."""

    account: str = Field(description="Name of the account through which it is read.")
    drive_id: str = Field(description="Microsoft's id of the drive or document library.")
    folder: str = Field(default="", description="Path below the drive's root; empty for all of it.")
    name: str = Field(default="", description="What it is called; empty for the folder's path.")
    subfolders: bool = Field(default=True, description="Whether folders below it count as well.")
    include: list[str] = Field(
        default=[], description="Globs; with any, only files that match one are wanted."
    )
    exclude: list[str] = Field(
        default=[], description="Globs; files that match one are not wanted."
    )
    types: list[str] = Field(
        default=[], description="Endings such as pdf; empty for all that can be read."
    )
    max_bytes: Annotated[int, Field(gt=0)] = Field(
        default=4 * 1024**3, description="Larger files are skipped."
    )
    on_delete: Annotated[str, Field(pattern="^(mirror|keep)$")] = Field(
        default="mirror", description="mirror removes what the source removed; keep keeps it."
    )
    grace_seconds: Annotated[float, Field(ge=0)] = Field(
        default=7 * _DAY_SECONDS,
        description="How long removed content stays hidden before it is erased.",
    )
    brake_count: Annotated[int, Field(ge=0)] = Field(
        default=50, description="More removals at once than this stop and ask."
    )
    brake_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=20, description="A larger share at once stops and asks as well."
    )
    brake_floor: Annotated[int, Field(ge=1)] = Field(
        default=10, description="The fewest removals that a share can stop."
    )
    modified_since: str | date = Field(
        default="none", description=BY_NAME["modified_since"].meaning
    )
    priority: str = Field(default="normal", description=BY_NAME["priority"].meaning)
    interval: str = Field(default="none", description=BY_NAME["interval"].meaning)
    quiet_hours: str = Field(default="none", description=BY_NAME["quiet_hours"].meaning)
    time_zone: str = Field(default="UTC", description=BY_NAME["time_zone"].meaning)
    backend: str = Field(default="embedded", description=BY_NAME["backend"].meaning)
    deadline: str = Field(default="none", description=BY_NAME["deadline"].meaning)
    labelled: str = Field(default="include", description=BY_NAME["labelled"].meaning)
    own_permissions: str = Field(default="include", description=BY_NAME["own_permissions"].meaning)

    @property
    def policy(self) -> dict[str, Any]:
        """The options of its policy, by the names of the table of options."""
        renamed = {"max_size": self.max_bytes, "grace": self.grace_seconds}
        return {name: renamed.get(name, getattr(self, name, None)) for name in BY_NAME}

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        _, wrong = read_policy(self.policy, now=0)
        if wrong:
            raise ValueError(" ".join(wrong.values()))
        return self
