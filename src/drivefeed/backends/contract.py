"""The backend contract, version 1: what is sent to an ingestion backend and what it answers.

The same shapes are used by the client, by the server of our own backend and by the conformance
kit, and the OpenAPI document in ``docs/backend-contract.openapi.json`` is made from them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from drivefeed.domain.reasons import Reason
from drivefeed.ports import BackendState, BackendStatus, Submission

VERSION: Final = "v1"
MOST_REQUEST_BYTES: Final = 256 * 1024
MOST_ANSWER_BYTES: Final = 64 * 1024
MOST_DETAIL: Final = 2_000
LONGEST_STORE_KEY: Final = 1024
"""As long as the keys of S3 may be."""
PROBLEM_TYPE: Final = "application/problem+json"

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9._~:-]{1,64}$")]
"""What fits into an address as it is, so that no proxy can read it in another way."""
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9._~:-]{1,80}$")]
JobId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._~:-]{1,200}$")]
Name = Annotated[str, Field(min_length=1, max_length=1024)]
Folders = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=200)]
Round = Annotated[int, Field(ge=1, le=2**31 - 1)]

REFUSALS: Final = (
    Reason.UNSUPPORTED_TYPE,
    Reason.ENCRYPTED,
    Reason.CORRUPT,
    Reason.NO_TEXT,
    Reason.TOO_LARGE,
    Reason.EXTRACTION_TIMEOUT,
    Reason.EXTRACTION_CRASHED,
    Reason.OUT_OF_MEMORY,
    Reason.BACKEND_REFUSED,
)
"""The closed list of reasons for which a backend may refuse a file."""


class Shape(BaseModel):
    """An object on the wire; members that it does not know are ignored, for later versions."""

    model_config = ConfigDict(extra="ignore")


class Content(Shape):
    """Where the bytes are. One of the two members is there, as the backend's setting says."""

    url: Annotated[str, Field(pattern="^https?://", max_length=8_192)] | None = Field(
        default=None,
        description="A URL that gives the bytes to whoever asks, made fresh for this submission. "
        "It is a secret until it expires: do not log it.",
    )
    store_key: Annotated[str, Field(min_length=1, max_length=LONGEST_STORE_KEY)] | None = Field(
        default=None, description="The key of the object, for backends that read the store."
    )


class SubmissionShape(Shape):
    """A version of a document to make searchable."""

    key: Key = Field(description="The idempotency key, `import_id:round`.")
    org_id: Id = Field(description="Whose document it is; nothing may cross between two of them.")
    document_id: Id = Field(description="The document; it stays the same through all versions.")
    import_id: Id = Field(description="The version of the document.")
    round: Round = Field(description="How often this version was imported, from 1.")
    seq: Annotated[int, Field(ge=0, le=2**53 - 1)] = Field(
        description="Rises whenever another version is wanted. Of two, the higher is shown."
    )
    name: Name = Field(description="The file's name, in any script.")
    size: Annotated[int, Field(ge=0)] = Field(description="Bytes.")
    media_type: Annotated[str, Field(max_length=255)] | None = Field(
        default=None, description="As the source has it; it may be wrong."
    )
    source: Annotated[str, Field(max_length=40)] = Field(
        default="drive", description="`drive`, `capture` or `batch`."
    )
    folders: Folders = Field(default=[], description="Ids of its folders, the outermost first.")
    metadata: dict[str, str] = Field(
        default={}, max_length=100, description="Further words about it; none so far."
    )
    content: Content
    call_url: Annotated[str, Field(pattern="^https?://", max_length=1024)] | None = Field(
        default=None, description="Where you may say that the job ended; see below."
    )


class JobState(StrEnum):
    """Where a job stands; all but the first are final."""

    WORKING = "working"
    DONE = "done"
    REFUSED = "refused"
    CANCELLED = "cancelled"


class JobShape(Shape):
    """A job as the backend tells of it."""

    job_id: JobId = Field(description="The backend's own name for it.")
    state: JobState
    progress: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0, description="Percent; it never falls."
    )
    live: bool = Field(
        default=True, description="Whether a search finds, now, what the job brought in."
    )
    again_after_ms: Annotated[int, Field(ge=0, le=3_600_000)] | None = Field(
        default=None, description="When to ask again, where the backend knows better."
    )
    pages: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="Pages to charge; there once it is done, and never changed."
    )
    chunks: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = Field(
        default=None, description="Chunks in the index; there once it is done."
    )
    reason: str | None = Field(
        default=None, description="Why it was refused; one of the closed list."
    )
    detail: str = Field(default="", description="The same in words, for a person.")


class CancelShape(Shape):
    """What became of a cancellation."""

    cancelled: bool = Field(
        description="True where the job will not finish and nothing of it will be shown."
    )
    job: JobShape


class LiveShape(Shape):
    """Whether a round of an import is shown."""

    live: bool


class PlaceShape(Shape):
    """Where a document lies, and what it is called."""

    name: Name
    folders: Folders = []


class HealthShape(Shape):
    """The backend answers, and takes the secret."""

    version: str = Field(description="The version of the contract: `v1`.")
    name: str = Field(default="", description="What the backend calls itself.")
    usage_owner: str | None = Field(
        default=None,
        pattern="^(drivefeed|backend)$",
        description="Who keeps the books of pages by its own settings, `drivefeed` or `backend`; "
        "left out where it does not care. drivefeed says so where its settings differ.",
    )


class ProblemShape(Shape):
    """An error as RFC 9457 has it, with a code of the closed list."""

    code: str
    title: str = ""
    status: int = 0
    detail: str = ""
    reason: str | None = Field(default=None, description="With `refused`: of the closed list.")


class Code(StrEnum):
    """The closed list of codes in error bodies."""

    MALFORMED = "malformed"
    UNAUTHORIZED = "unauthorized"
    UNKNOWN_JOB = "unknown_job"
    UNKNOWN_KEY = "unknown_key"
    LOWER_SEQ = "lower_seq"
    KEY_REUSED = "key_reused"
    TOO_LARGE = "too_large"
    REFUSED = "refused"
    TOO_MANY = "too_many"
    UNAVAILABLE = "unavailable"


STATUS_OF: Final[dict[Code, int]] = {
    Code.MALFORMED: 400,
    Code.UNAUTHORIZED: 401,
    Code.UNKNOWN_JOB: 404,
    Code.UNKNOWN_KEY: 404,
    Code.LOWER_SEQ: 409,
    Code.KEY_REUSED: 409,
    Code.TOO_LARGE: 413,
    Code.REFUSED: 422,
    Code.TOO_MANY: 429,
    Code.UNAVAILABLE: 503,
}

ANSWERS: Final = (
    ("200, 201, 202", "", "taken as it says", "-"),
    ("204", "", "taken; nothing to say", "-"),
    ("400", Code.MALFORMED, "rejects the file as `backend_refused`", "reject"),
    ("401, 403", Code.UNAUTHORIZED, "holds everything of this backend, and says so", "wait"),
    ("404", Code.UNKNOWN_JOB, "submits again under the same key", "retry"),
    ("404", Code.UNKNOWN_KEY, "submits", "-"),
    ("404, 405, any 3xx", "none of these", "holds: it is not the address of a backend", "wait"),
    ("409", Code.LOWER_SEQ, "rejects the version; a newer one is with the backend", "reject"),
    ("409", Code.KEY_REUSED, "rejects the file as `backend_refused`", "reject"),
    ("413", Code.TOO_LARGE, "rejects the file as `too_large`", "reject"),
    ("422", Code.REFUSED, "rejects the file for the `reason`", "reject"),
    ("429", Code.TOO_MANY, "asks again after `Retry-After`; no attempt is used", "retry"),
    ("500", "", "tries this file again; the third in a row holds everything", "retry"),
    ("502, 503, 504", Code.UNAVAILABLE, "holds everything of this backend", "wait"),
    ("no answer in time", "", "holds everything, then looks for the key", "wait"),
    ("a success that is not of this contract", "", "holds everything of this backend", "wait"),
)
"""HTTP status, code, what drivefeed does, and in one word."""


def submission_shape(
    sent: Submission, content: Content, call_url: str | None = None
) -> SubmissionShape:
    """Return a submission as it is sent."""
    return SubmissionShape(
        key=sent.key,
        org_id=sent.org_id,
        document_id=sent.document_id,
        import_id=sent.import_id,
        round=sent.round,
        seq=sent.seq,
        name=sent.name,
        size=sent.size,
        media_type=sent.media_type,
        source=sent.source,
        folders=list(sent.folders),
        metadata=dict(sent.metadata),
        content=content,
        call_url=call_url,
    )


def submission_of(shape: SubmissionShape, object_key: str) -> Submission:
    """Return a submission as the port has it; its bytes are under ``object_key``."""
    fields: dict[str, Any] = shape.model_dump(exclude={"content", "folders", "call_url"})
    return Submission(**fields, folders=tuple(shape.folders), object_key=object_key)


def status_of(job: JobShape) -> BackendStatus:
    """Return what a job's shape means; a reason that is not on the list is told in words."""
    reason = next((one for one in REFUSALS if one == job.reason), None)
    detail = job.detail[:MOST_DETAIL]
    if job.state is JobState.REFUSED and reason is None:
        detail = f"{job.reason or 'no reason'}: {detail}".rstrip(": ")
        reason = Reason.BACKEND_REFUSED
    return BackendStatus(
        BackendState(job.state),
        progress=job.progress,
        again_after_ms=job.again_after_ms,
        pages=job.pages,
        chunks=job.chunks,
        reason=reason if job.state is JobState.REFUSED else None,
        detail=detail,
        live=job.live,
    )


def job_shape(job_id: str, status: BackendStatus) -> JobShape:
    """Return a job as it is told; the state must not be UNKNOWN."""
    refused = status.state is BackendState.REFUSED
    reason = status.reason if status.reason in REFUSALS else Reason.BACKEND_REFUSED
    return JobShape(
        job_id=job_id,
        state=JobState(status.state),
        progress=status.progress,
        live=status.live,
        again_after_ms=status.again_after_ms,
        pages=status.pages,
        chunks=status.chunks,
        reason=reason if refused else None,
        detail=status.detail[:MOST_DETAIL],
    )
