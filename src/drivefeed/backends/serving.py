"""Any implementation of the port served over the published contract.

The OpenAPI document of the contract is made from this application, so what is published is what
our own backend does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Protocol

from fastapi import Body, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from drivefeed import __version__
from drivefeed.backends.contract import (
    PROBLEM_TYPE,
    STATUS_OF,
    VERSION,
    CancelShape,
    Code,
    HealthShape,
    Id,
    JobId,
    JobShape,
    Key,
    LiveShape,
    PlaceShape,
    ProblemShape,
    Round,
    SubmissionShape,
    job_shape,
)
from drivefeed.domain.errors import (
    DrivefeedError,
    PartDown,
    Permanent,
    Throttled,
)
from drivefeed.domain.redact import redact
from drivefeed.ports import BackendState
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from drivefeed.domain.reasons import Reason
    from drivefeed.ports import BackendStatus, IngestionBackend

JobAt = Annotated[JobId, Path(description="As the answer to the submission had it.")]
DocumentAt = Annotated[Id, Path()]
ImportAt = Annotated[Id, Path()]
RoundAt = Annotated[Round, Path(alias="round")]

_log = log("backend")


class Accepting(Protocol):
    """Takes a submission with what it says of the bytes, and returns the job's id."""

    async def __call__(self, shape: SubmissionShape) -> str:
        """Accept, or find what was accepted; raises errors of drivefeed."""
        ...


class Refusal(Exception):
    """A request that is answered with a problem of the contract."""

    def __init__(
        self, code: Code, detail: str, *, reason: Reason | None = None, seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.reason = reason
        self.seconds = seconds


def application(backend: IngestionBackend, accept: Accepting) -> FastAPI:
    """Return the application, without the gate before it."""
    app = FastAPI(
        title="drivefeed backend contract",
        version=VERSION,
        summary="What drivefeed asks of an ingestion backend. docs/backend-contract.md says how.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        responses={
            code: {"model": ProblemShape, "description": words}
            for code, words in (
                (400, "`malformed`"),
                (401, "`unauthorized`"),
                (413, "`too_large`"),
                (429, "`too_many`, with Retry-After"),
                (503, "`unavailable`, with Retry-After"),
            )
        },
    )
    _add_jobs(app, backend, accept)
    _add_documents(app, backend)
    _answer_errors(app)
    return app


def _add_jobs(app: FastAPI, backend: IngestionBackend, accept: Accepting) -> None:
    @app.get(f"/{VERSION}/health", summary="Answer, and take the secret", tags=["health"])
    async def health() -> HealthShape:
        await backend.check()
        return HealthShape(version=VERSION, name=f"drivefeed {__version__}")

    async def known(job_id: str) -> BackendStatus:
        status = await backend.status(job_id)
        if status.state is BackendState.UNKNOWN:
            raise Refusal(Code.UNKNOWN_JOB, f"There is no job {job_id}.")
        return status

    @app.post(
        f"/{VERSION}/jobs",
        summary="Submit a version; the same key gives the same job, for ever",
        tags=["jobs"],
        responses={
            409: {"model": ProblemShape, "description": "`lower_seq` or `key_reused`"},
            422: {"model": ProblemShape, "description": "`refused`, with a reason"},
        },
    )
    async def submit(shape: Annotated[SubmissionShape, Body()]) -> JobShape:
        job_id = await accept(shape)
        return job_shape(job_id, await known(job_id))

    @app.get(
        f"/{VERSION}/jobs",
        summary="Find a job by its idempotency key",
        tags=["jobs"],
        responses={404: {"model": ProblemShape, "description": "`unknown_key`"}},
    )
    async def find(key: Annotated[Key, Query()]) -> JobShape:
        job_id = await backend.find(key)
        if job_id is None:
            raise Refusal(Code.UNKNOWN_KEY, f"No job was submitted under {key}.")
        return job_shape(job_id, await known(job_id))

    @app.get(
        f"/{VERSION}/jobs/{{job_id}}",
        summary="Tell how a job stands",
        tags=["jobs"],
        responses={404: {"model": ProblemShape, "description": "`unknown_job`"}},
    )
    async def status(job_id: JobAt) -> JobShape:
        return job_shape(job_id, await known(job_id))

    @app.post(
        f"/{VERSION}/jobs/{{job_id}}/cancel",
        summary="Cancel a job; it may be asked again and again",
        tags=["jobs"],
        responses={404: {"model": ProblemShape, "description": "`unknown_job`"}},
    )
    async def cancel(job_id: JobAt) -> CancelShape:
        await known(job_id)
        cancelled = await backend.cancel(job_id)
        return CancelShape(cancelled=cancelled, job=job_shape(job_id, await known(job_id)))


def _add_documents(app: FastAPI, backend: IngestionBackend) -> None:
    rounds = f"/{VERSION}/documents/{{document_id}}/imports/{{import_id}}/rounds/{{round}}"

    @app.delete(
        rounds,
        summary="Remove everything of one round; fine where there is nothing",
        tags=["documents"],
        status_code=204,
    )
    async def remove(document_id: DocumentAt, import_id: ImportAt, round_: RoundAt) -> Response:
        await backend.remove(document_id=document_id, import_id=import_id, round_=round_)
        return Response(status_code=204)

    @app.put(
        f"{rounds}/live",
        summary="Show or hide what one round brought in; fine where there is nothing",
        tags=["documents"],
        status_code=204,
    )
    async def set_live(
        document_id: DocumentAt, import_id: ImportAt, round_: RoundAt, shape: LiveShape
    ) -> Response:
        await backend.set_live(
            document_id=document_id, import_id=import_id, round_=round_, live=shape.live
        )
        return Response(status_code=204)

    @app.put(
        f"/{VERSION}/documents/{{document_id}}/place",
        summary="Record where a document lies and what it is called",
        tags=["documents"],
        status_code=204,
    )
    async def set_place(document_id: DocumentAt, shape: PlaceShape) -> Response:
        await backend.set_folders(
            document_id=document_id, name=shape.name, folders=tuple(shape.folders)
        )
        return Response(status_code=204)


def refused(refusal: Refusal) -> JSONResponse:
    """Return the answer of a refusal."""
    status = STATUS_OF[refusal.code]
    members: dict[str, Any] = {
        "type": f"urn:drivefeed:backend:{refusal.code}",
        "code": refusal.code,
        "title": refusal.code.replace("_", " "),
        "status": status,
        "detail": refusal.detail,
    }
    if refusal.reason is not None:
        members["reason"] = refusal.reason
    headers = {} if refusal.seconds is None else {"Retry-After": str(max(1, int(refusal.seconds)))}
    return JSONResponse(members, status, headers=headers, media_type=PROBLEM_TYPE)


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def said(_: Request, error: Refusal) -> Response:
        return refused(error)

    @app.exception_handler(DrivefeedError)
    async def known(_: Request, error: DrivefeedError) -> Response:
        words = redact(str(error))
        match error:
            case Permanent():
                return refused(Refusal(Code.REFUSED, words, reason=error.reason))
            case Throttled():
                return refused(Refusal(Code.TOO_MANY, words, seconds=error.seconds))
            case PartDown(wait_ms=wait_ms):
                return refused(Refusal(Code.UNAVAILABLE, words, seconds=(wait_ms or 5000) / 1000))
            case _:
                return refused(Refusal(Code.UNAVAILABLE, words, seconds=5))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
        return refused(Refusal(Code.MALFORMED, "; ".join(wrong)[:1000]))

    @app.exception_handler(HTTPException)
    async def plain(_: Request, error: HTTPException) -> Response:
        # Nothing of the contract is at this address; without a code of it, on purpose.
        return JSONResponse({"detail": str(error.detail)}, error.status_code)

    @app.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> Response:
        _log.error("backend_defect", path=request.url.path, error=type(error).__name__)
        return JSONResponse({"detail": "The backend failed."}, 500)
