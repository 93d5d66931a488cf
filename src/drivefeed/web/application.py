"""The application: routes, and how each kind of error is answered."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse
from starlette.staticfiles import StaticFiles

from drivefeed import __version__
from drivefeed.catalog.examination import answers
from drivefeed.domain.errors import DrivefeedError, PartDown
from drivefeed.telemetry import log
from drivefeed.web import api, backend_calls, change_calls, events, pages, signing, usage
from drivefeed.web.guard import Guard
from drivefeed.web.problems import (
    PROBLEM_TYPE,
    Problem,
    bad_request,
    not_found,
    problem_of,
)

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from drivefeed.web.site import Site

ROUTERS = (
    signing.router,
    pages.router,
    api.router,
    usage.router,
    events.router,
    backend_calls.router,
    change_calls.router,
)
"""All addresses but /healthz, the files under /static and the description of the API."""

_SIGN_IN = 401
_NOT_FOUND = 404

_log = log("web")


def routes_of(site: Site) -> FastAPI:
    """Return the application of a site, without the guard before it."""
    app = FastAPI(
        title="drivefeed",
        version=__version__,
        summary="Where the files of connected folders stand, and why. Everything here only reads.",
        openapi_url="/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.site = site
    for router in ROUTERS:
        app.include_router(router)
    static = str(files("drivefeed.web") / "static")
    app.mount("/static", StaticFiles(directory=static), name="static")

    @app.get("/healthz", include_in_schema=False)
    async def health() -> PlainTextResponse:
        return PlainTextResponse("ok\n")

    @app.get("/readyz", include_in_schema=False)
    async def ready() -> JSONResponse:
        try:
            await answers(site.catalog)
        except PartDown:
            words = {"ready": False, "words": "It waits for the catalog."}
            return JSONResponse(words, status_code=503)
        return JSONResponse({"ready": True, "words": ""})

    _answer_errors(app)
    return app


def guarded(app: FastAPI) -> ASGIApp:
    """Return the application as it is served."""
    return Guard(app, names={app.state.site.host_name, *app.state.site.names})


def _answer_errors(app: FastAPI) -> None:
    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> Response:
        return _answer(request, error)

    @app.exception_handler(DrivefeedError)
    async def known(request: Request, error: DrivefeedError) -> Response:
        return _answer(request, problem_of(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        wrong = [
            {"parameter": ".".join(map(str, one["loc"][1:])), "problem": one["msg"]}
            for one in error.errors()
        ]
        words = "; ".join(f"{one['parameter']}: {one['problem']}" for one in wrong)
        return _answer(request, bad_request(words, wrong))

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        if error.status_code == _NOT_FOUND:
            return _answer(request, not_found())
        return _answer(
            request,
            Problem(
                error.status_code,
                "refused",
                str(error.detail),
                remedy="Everything here only reads: ask with GET.",
                headers=error.headers,
            ),
        )

    @app.exception_handler(Exception)
    async def defect(request: Request, error: Exception) -> Response:
        _log.error("web_defect", path=request.url.path, error=type(error).__name__)
        return _answer(
            request,
            Problem(
                500,
                "failed",
                "The page could not be made.",
                remedy="Try again; if it stays, look at the log and report it.",
            ),
        )


def _answer(request: Request, problem: Problem) -> Response:
    if not _is_page(request):
        members: dict[str, Any] = problem.as_dict() | {"instance": request.url.path}
        return JSONResponse(
            members, problem.status, headers=problem.headers, media_type=PROBLEM_TYPE
        )
    if problem.status == _SIGN_IN:
        html = signing.sign_in_form(request, problem)
        return HTMLResponse(html, problem.status)
    html = request.app.state.site.render("problem.html", problem=problem)
    return HTMLResponse(html, problem.status, headers=problem.headers)


def _is_page(request: Request) -> bool:
    return not request.url.path.startswith(("/v1/", "/events", "/notifications/"))
