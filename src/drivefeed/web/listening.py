"""Sockets that are bound before anything is said of them, and the server on them."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING, Final

import uvicorn

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.web.connections import PatientProtocol
from drivefeed.web.quiet_server import QuietServer

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_BACKLOG: Final = 128


async def server_of(app: ASGIApp, *, most_requests: int, grace_seconds: int) -> QuietServer:
    """Return what serves an application on a socket that is bound already.

    Args:
        most_requests: so many are answered at the same time; further ones are refused.
        grace_seconds: how long requests may take that run when it is to stop.
    """
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        limit_concurrency=most_requests,
        timeout_graceful_shutdown=grace_seconds,
    )
    # It imports its protocols, which takes tenths of a second.
    await asyncio.to_thread(config.load)
    return QuietServer(config)


def address_of(host: str, port: int) -> str:
    """Return the URL of a bound address; of all addresses of the machine, one by its name."""
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104 - it is asked for, not bound, here
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what is bound there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int, *, what: str, remedy: str) -> socket.socket:
    """Return a listening socket.

    Args:
        what: what wants to listen, as a sentence begins.
        remedy: the sentence that says what to do where it cannot.

    Raises:
        NeedsAttention: the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise NeedsAttention(
            f"{what} cannot listen on {host} port {port}: {error.strerror}. {remedy}",
            reason=Reason.MISCONFIGURED,
        ) from error
    return made
