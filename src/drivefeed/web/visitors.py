"""Who asks: an API key in a header, or the session of a browser in a cookie.

The organization comes from the credential alone; no address and no parameter names one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

from fastapi import Depends, Request

from drivefeed.catalog.api_keys import ApiKey, FreshKey, Kind, Scope, key_behind
from drivefeed.web.problems import Problem, sign_in_needed, too_many_wrong_keys
from drivefeed.web.site import Site, site_of

if TYPE_CHECKING:
    from starlette.responses import Response

_BEARER: Final = "bearer "
_UNKNOWN_ADDRESS: Final = "unknown"


async def visitor(request: Request) -> ApiKey:
    """Return the key or the session of a request that may read.

    Raises:
        Problem: there is none, it is not valid, or it may not read.
    """
    site = site_of(request)
    header = request.headers.get("authorization")
    if header is not None:
        if not header.lower().startswith(_BEARER):
            raise sign_in_needed("The header Authorization holds no bearer token.")
        key = await checked_key(request, header[len(_BEARER) :].strip())
    else:
        found = await session_of(request, site)
        if found is None:
            raise sign_in_needed()
        key = found
    if not key.allows(Scope.READ):
        raise Problem(
            403,
            "scope_missing",
            "This key may not read.",
            remedy="Make one that may: drivefeed key create NAME --scopes read.",
        )
    return key


Visitor = Annotated[ApiKey, Depends(visitor)]


async def checked_key(request: Request, text: str) -> ApiKey:
    """Return the API key with this text.

    Raises:
        Problem: it is not valid, or too many wrong ones came from the address.
    """
    site, address = site_of(request), address_of(request)
    key = await key_behind(site.catalog, text, Kind.KEY)
    if key is not None:
        return key
    seconds = site.wrong_keys.seconds_to_wait(address)
    if seconds:
        raise too_many_wrong_keys(seconds)
    site.wrong_keys.was_wrong(address)
    raise sign_in_needed("This API key is unknown, expired or revoked.")


async def session_of(request: Request, site: Site) -> ApiKey | None:
    """Return the session in the request's cookie, if it is valid."""
    text = request.cookies.get(cookie_name(request, site))
    return await key_behind(site.catalog, text, Kind.SESSION) if text else None


async def is_still_valid(request: Request) -> bool:
    """Whether whoever asked may still be answered, for answers that go on."""
    site = site_of(request)
    header = request.headers.get("authorization")
    if header is None:
        return await session_of(request, site) is not None
    text = header[len(_BEARER) :].strip()
    return await key_behind(site.catalog, text, Kind.KEY) is not None


def address_of(request: Request) -> str:
    """Return from where a request came."""
    return request.client.host if request.client else _UNKNOWN_ADDRESS


def cookie_name(request: Request, site: Site) -> str:
    """Return the name of the session's cookie.

    Browsers keep cookies by host and not by port, so two of us on one machine need two names.
    """
    if site.is_https:
        return "__Host-drivefeed"
    return f"drivefeed_{request.url.port or urlsplit(site.url).port or 80}"


def remember(request: Request, response: Response, site: Site, session: FreshKey) -> None:
    """Hand a session to the browser, out of reach of scripts and of other sites."""
    ends_at = session.key.expires_at
    left = (ends_at - site.catalog.clock.now()) // 1000 if ends_at is not None else None
    response.set_cookie(
        cookie_name(request, site),
        session.text,
        max_age=left,
        path="/",
        secure=site.is_https,
        httponly=True,
        samesite="strict",
    )


def forget(request: Request, response: Response, site: Site) -> None:
    """Take the session from the browser."""
    response.delete_cookie(
        cookie_name(request, site),
        path="/",
        secure=site.is_https,
        httponly=True,
        samesite="strict",
    )
