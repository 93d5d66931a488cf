"""Settings of what is kept for how long, and of how full things may get."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from drivefeed.setting_sections import Section

_Days = Annotated[float, Field(gt=0)]


class RetentionSettings(Section):
    """How long the catalog keeps what nothing needs any more.

    The ledger, what is live, numbers and keys that must not come again, and the audit log are
    kept for ever.
    """

    events_days: _Days = Field(
        default=90.0,
        description="Steps of versions that are gone; a quarter, since questions about a file come "
        "within weeks.",
    )
    ends_days: _Days = Field(
        default=730.0,
        description="How a version ended, and why; two years, so that an audit finds the past one.",
    )
    index_jobs_days: _Days = Field(
        default=30.0,
        description="Jobs of the embedded backend whose versions are gone; only a late reply could "
        "ask for one.",
    )
    notices_days: _Days = Field(
        default=90.0, description="Notices that are over, with their deliveries; as long as steps."
    )
    sessions_days: _Days = Field(
        default=7.0, description="Links and sessions of the status page, after their end."
    )
    heartbeats_days: _Days = Field(
        default=1.0, description="Processes that ended; whatever they held was freed in seconds."
    )

    @model_validator(mode="after")
    def _ends_outlive_steps(self) -> Self:
        if self.ends_days < self.events_days:
            raise ValueError("ends_days must not be shorter than events_days")
        return self
