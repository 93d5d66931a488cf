"""Browsers sign in by a link that works once, or by an API key, and sign out."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse

from drivefeed.catalog.sessions import end_session, open_session, redeem_link
from drivefeed.web.problems import Problem, bad_request, sign_in_needed, too_many_wrong_keys
from drivefeed.web.site import site_of
from drivefeed.web.visitors import address_of, checked_key, forget, remember, session_of

FORM_SECONDS: Final = 10.0
_MOST_BYTES: Final = 4_096
_OWN_SITE: Final = frozenset({"same-origin", "none"})

router = APIRouter(include_in_schema=False)


@router.get("/sign-in")
async def sign_in_page(request: Request) -> HTMLResponse:
    """Show the form for an API key."""
    return HTMLResponse(sign_in_form(request))


@router.post("/sign-in")
async def sign_in(request: Request) -> RedirectResponse:
    """Sign a browser in by an API key; the key itself is not kept in the browser."""
    site = site_of(request)
    form = await _form(request)
    key = await checked_key(request, form.get("key", "").strip())
    answer = RedirectResponse(_inside(form.get("next", "/")), 303)
    remember(request, answer, site, await open_session(site.catalog, key))
    return answer


@router.get("/sign-in/once")
async def sign_in_once(request: Request, link: str) -> RedirectResponse:
    """Sign a browser in by a link, and leave the address that holds its secret."""
    site, address = site_of(request), address_of(request)
    session = await redeem_link(site.catalog, link)
    if session is None:
        seconds = site.wrong_keys.seconds_to_wait(address)
        if seconds:
            raise too_many_wrong_keys(seconds)
        site.wrong_keys.was_wrong(address)
        raise Problem(
            410,
            "link_over",
            "This link signs nobody in any more.",
            detail="A link works once, and for ten minutes.",
            remedy="Print a new one with 'drivefeed key link'.",
        )
    answer = RedirectResponse("/sign-in/done", 303)
    remember(request, answer, site, session)
    return answer


@router.get("/sign-in/done")
async def signed_in(request: Request) -> HTMLResponse:
    """Go on to the overview.

    A browser that followed the link from somebody else's page sends our cookie only from a page
    of ours on, and this is one.
    """
    return HTMLResponse(site_of(request).render("signed_in.html"))


@router.post("/sign-out")
async def sign_out(request: Request) -> RedirectResponse:
    """End the session, here and in the browser."""
    site = site_of(request)
    await _form(request)
    session = await session_of(request, site)
    if session is not None:
        await end_session(site.catalog, session)
    answer = RedirectResponse("/sign-in", 303)
    forget(request, answer, site)
    return answer


def sign_in_form(request: Request, problem: Problem | None = None) -> str:
    """Return the page with the form; it leads back to where somebody wanted to go."""
    wanted = request.url.path if request.method == "GET" else "/"
    if request.url.query and request.method == "GET":
        wanted += f"?{request.url.query}"
    said = problem.detail if problem else ""
    return site_of(request).render("sign_in.html", wanted=_inside(wanted), said=said)


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form that a page of ours sent.

    Raises:
        Problem: another site sent it, or it is none.
    """
    if request.headers.get("sec-fetch-site", "none") not in _OWN_SITE:
        raise sign_in_needed("Another site sent this form.")
    body = b""
    try:
        async with asyncio.timeout(FORM_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise bad_request("The form is too long.")
    except TimeoutError:
        raise bad_request("The form did not arrive.") from None
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=10)
    except ValueError:
        raise bad_request("The form cannot be read.") from None
    return {name: values[-1] for name, values in fields.items()}


def _inside(address: str) -> str:
    """Return an address of ours; the overview for what leads elsewhere, or to signing in."""
    if not address.startswith("/") or address.startswith(("//", "/\\", "/sign-", "/static/")):
        return "/"
    return "/" if any(sign in address for sign in "\\\r\n\t") else address
