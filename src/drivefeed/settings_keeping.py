"""Settings of what is kept for how long, and of how full things may get."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from drivefeed.domain.gate import LEAST_ROOM, MIB
from drivefeed.setting_sections import Section

_Days = Annotated[float, Field(gt=0)]
_MOST_MB = 2**30
"""A pebibyte: no folder has more, so a larger mark is a slip of the hand."""


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


class DiskSettings(Section):
    """How full the disks may get: below the low marks nothing new is downloaded."""

    low_mb: Annotated[int, Field(gt=0, le=_MOST_MB)] = Field(
        default=256,
        description="Free MiB below which downloads hold, for the data folder and all that lies in "
        "it; above the 128 that the embedded index needs to write at all.",
    )
    high_mb: Annotated[int, Field(gt=0, le=_MOST_MB)] = Field(
        default=512, description="Free MiB at which they go on."
    )
    temp_low_mb: Annotated[int, Field(ge=0, le=_MOST_MB)] = Field(
        default=64, description="The low mark of the folder for temporary files."
    )
    temp_high_mb: Annotated[int, Field(ge=0, le=_MOST_MB)] = Field(
        default=128, description="Its high mark."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low_mb * MIB <= LEAST_ROOM:
            raise ValueError(f"low_mb must be more than {LEAST_ROOM // MIB}")
        for low, high in (("low_mb", "high_mb"), ("temp_low_mb", "temp_high_mb")):
            marks = getattr(self, low), getattr(self, high)
            if marks[1] < marks[0]:
                raise ValueError(f"{high} ({marks[1]}) must not be below {low} ({marks[0]})")
        return self


class ReconcileSettings(Section):
    """How often each drive is listed in full, for what its changes never told.

    Microsoft loses some of them. The listing takes the lane that nothing waits for: 2 units for 200
    items, so a million items cost a hundredth of a small tenant's daily allowance.
    """

    every_hours: Annotated[float, Field(ge=0)] = Field(
        default=24.0,
        description="From one listing of a drive to the next, up to a quarter more or less; a day, "
        "since a lost removal should not be found for longer. 0 for never.",
    )


class BacklogSettings(Section):
    """How much may be stored and not indexed yet, before the rest of a large import waits.

    Fresh changes, and organizations with little in it, are not held.
    """

    files: Annotated[int, Field(ge=10)] = Field(
        default=2_000, description="Files that are stored and wait to be indexed."
    )
    mb: Annotated[int, Field(ge=1)] = Field(
        default=10_240, description="MiB of such files; as much as one restores within hours."
    )
    resume_percent: Annotated[int, Field(ge=1, le=100)] = Field(
        default=75, description="Of either number; below it, transfers go on."
    )
