"""The passport of a file as ``/v1`` answers it and as its page shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from drivefeed.catalog.progress import Standing
from drivefeed.domain.lifecycle import State
from drivefeed.domain.story import told
from drivefeed.domain.words import meaning_of, remedy_of

if TYPE_CHECKING:
    from drivefeed.catalog.passport import Passport


class WhyShape(BaseModel):
    """A reason in words."""

    reason: str
    meaning: str
    remedy: str


class DecisionShape(BaseModel):
    """What a connection decided about the file."""

    connection: str
    admitted: bool
    why: WhyShape | None = Field(description="Why it was skipped.")
    leaving: str | None = Field(description="Why it is to be removed, while somebody decides.")


class StepShape(BaseModel):
    """Something that happened to a version."""

    at: int
    event: str
    round: int
    state: str
    reason: str | None
    words: str
    tone: str


class VersionShape(BaseModel):
    """The journey of one version. Instants are milliseconds since the epoch."""

    number: int
    import_id: str
    version_key: str
    standing: str = Field(description="searchable, failed, held, or the state of the import.")
    state: str
    round: int
    whys: list[WhyShape]
    detail: str
    seen_at: int
    settled_at: int | None
    size: int | None
    sha256: str | None
    integrity: str | None
    object_key: str | None = Field(description="Where its bytes are; null before they were copied.")
    pages: int | None
    chunks: int | None
    backend_job: str | None
    indexed_percent: int | None = Field(
        description="How far our own backend is, while it works on this version."
    )
    charged_pages: int | None
    charged_at: int | None
    due_stage: str | None
    due_at: int | None
    story: list[StepShape]


class PassportShape(BaseModel):
    """All that is known of one file."""

    path: str
    name: str
    item_id: str
    size: int | None
    modified_at: int | None
    deleted: bool
    web_url: str | None
    erase_at: int | None
    decisions: list[DecisionShape]
    versions: list[VersionShape] = Field(description="The newest first.")


def passport_shape(one: Passport) -> PassportShape:
    """Return a passport; the versions are numbered from the oldest."""
    document = one.document or {}
    versions = [
        _version_shape(version, number, document) for number, version in enumerate(one.versions, 1)
    ]
    return PassportShape(
        path=one.path,
        name=one.item.name,
        item_id=one.item.item_id,
        size=one.item.size,
        modified_at=one.item.modified_at,
        deleted=one.item.deleted,
        web_url=one.item.web_url,
        erase_at=document.get("erase_at"),
        decisions=[_decision_shape(decision) for decision in one.coverage],
        versions=versions[::-1],
    )


def _decision_shape(decision: dict[str, Any]) -> DecisionShape:
    return DecisionShape(
        connection=decision["connection"],
        admitted=decision["admitted"],
        why=None if decision["admitted"] else _why(str(decision["reason"])),
        leaving=decision["leaving"],
    )


def _version_shape(version: dict[str, Any], number: int, document: dict[str, Any]) -> VersionShape:
    charged, due = version["charged"] or {}, version["due"] or {}
    live = (document.get("live_import_id"), document.get("live_round"))
    codes = dict.fromkeys((version["reason"], version["attention"], version["hold"]))
    return VersionShape(
        number=number,
        import_id=version["id"],
        version_key=version["version_key"],
        standing=_standing(version, is_live=live == (version["id"], version["round"])),
        state=version["state"],
        round=version["round"],
        whys=[_why(str(code)) for code in codes if code],
        detail=version["detail"] or "",
        seen_at=version["created_at"],
        settled_at=version["settled_at"],
        size=version["size"],
        sha256=version["sha256"],
        integrity=version["integrity"],
        object_key=version["object_key"] if version["sha256"] else None,
        pages=version["pages"],
        chunks=version["chunks"],
        backend_job=version["backend_job"],
        indexed_percent=version["indexed_percent"],
        charged_pages=charged.get("pages"),
        charged_at=charged.get("at"),
        due_stage=due.get("stage"),
        due_at=due.get("due_at"),
        story=[_step_shape(event) for event in version["events"]],
    )


def _standing(version: dict[str, Any], *, is_live: bool) -> str:
    if is_live:
        return Standing.SEARCHABLE.value
    if version["attention"] or version["state"] == State.REJECTED:
        return Standing.FAILED.value
    if version["hold"]:
        return Standing.HELD.value
    return str(version["state"])


def _step_shape(event: dict[str, Any]) -> StepShape:
    words = told(event)
    return StepShape(
        at=event["at"],
        event=event["event"],
        round=event["round"],
        state=event["state"],
        reason=event["reason"],
        words=str(words),
        tone=words.tone,
    )


def _why(code: str) -> WhyShape:
    return WhyShape(reason=code, meaning=meaning_of(code), remedy=remedy_of(code))
