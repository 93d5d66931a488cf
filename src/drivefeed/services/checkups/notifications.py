"""Whether the address under which Microsoft is to tell of changes leads to our endpoint.

It is called as Microsoft calls it when a subscription is made: the answer is the token, as plain
text. Source: Microsoft's page "Receive change notifications through webhooks".
"""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus, urlsplit

from drivefeed.domain.subscription import PATH
from drivefeed.services.checkups.finding import Finding, green, red, yellow
from drivefeed.services.checkups.reach import Answer, Obstacle, Reach, ask, host_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from drivefeed.outbound import Outbound

PART: Final = "notifications"
_OK: Final = 200
_NOT_FOUND: Final = 404
_OURS: Final = "application/problem+json"
_NOBODY: Final = "doctor"
"""Stands for a subscription where there is none yet; our endpoint says that it knows none."""
_FORWARD: Final = (
    "Have whatever answers there pass /notifications/ to the status page (web_port), unchanged and "
    "under the same host name; or correct notifications.url."
)


async def may_turn_back(host: str, port: int) -> bool:
    """Whether the way to a host may end at our own router, though others are let in there.

    Routers that share one public address often do not lead back to it from inside ("hairpin NAT").
    Nothing is sent.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except OSError:
        return False
    family, _, _, _, there = found[0]
    with socket.socket(family, socket.SOCK_DGRAM) as way:
        try:
            way.connect(there)
        except OSError:
            # No way leads there from here, whoever else gets in.
            return True
        here = way.getsockname()[0]
    return is_shared(here, str(there[0]))


def is_shared(here: str, there: str) -> bool:
    """Whether an address of ours is one of those that hide behind a public one."""
    return not ip_address(here).is_global and ip_address(there).is_global


async def look_at_address(
    url: str,
    way: Outbound,
    *,
    subscription_id: str | None,
    token: str,
    is_running: bool,
    turns_back: Callable[[str, int], Awaitable[bool]] = may_turn_back,
) -> Finding:
    """Call the address as Microsoft does before it grants a subscription.

    Args:
        url: ``notifications.url``.
        way: the way out of this machine.
        subscription_id: ours, of any subscription; None where there is none yet.
        token: what has to come back.
        is_running: whether a daemon runs on the data folder.
        turns_back: see :func:`may_turn_back`.
    """
    called = f"{url.rstrip('/')}{PATH}{subscription_id or _NOBODY}"
    answer = await ask("POST", f"{called}?validationToken={quote_plus(token)}", way)
    host = host_of(url)
    if isinstance(answer, Answer):
        problem = _wrong_with(answer, token if subscription_id else None)
        if problem is None:
            what = "gives Microsoft's token back" if subscription_id else "leads to drivefeed"
            return green(PART, f"{host} {what}.")
        remedy = _FORWARD
    else:
        problem, remedy = answer.words, _remedy(answer)
    words = f"{host}, where Microsoft is to tell of changes: {problem}."
    if not is_running:
        return yellow(PART, words, f"No daemon runs here: start it with 'drivefeed up'. {remedy}")
    if isinstance(answer, Answer) or answer.proxy is None:
        parts = urlsplit(url)
        if await turns_back(parts.hostname or "", parts.port or 443):
            words += " It may be so from this machine alone, if its router does not lead back."
            return yellow(PART, words, f"Try 'curl -i -X POST {called}' from outside. {remedy}")
    return red(PART, words, f"{remedy} Drives are asked for changes meanwhile.")


def _wrong_with(answer: Answer, token: str | None) -> str | None:
    is_text = answer.content_type.partition(";")[0].strip().lower() == "text/plain"
    if token is not None and answer.status == _OK and is_text and answer.body == token.encode():
        return None
    if token is None and answer.status == _NOT_FOUND and answer.content_type.startswith(_OURS):
        return None
    return f"it answers {answer.status}, and not as drivefeed's endpoint"


def _remedy(met: Reach) -> str:
    match met.obstacle:
        case Obstacle.NAME:
            return "Enter the name in the public DNS, or correct notifications.url."
        case Obstacle.PROXY:
            return f"Correct the proxy of the section outbound, or name {met.host} in no_proxy."
        case Obstacle.TRUST:
            return (
                "Microsoft calls nobody whose certificate no public authority signed: give the "
                "host one, with the whole chain."
            )
        case _:
            return f"Start what is to listen there, and open its port. {_FORWARD}"
