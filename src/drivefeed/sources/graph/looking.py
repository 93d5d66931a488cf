"""Questions that look for places: their refusals are answers, told apart by whoever asks.

The client's own ``read`` takes a 404 for a drive that may be gone. Here nothing is known yet, so
the refusal itself comes back; only what has nothing to do with the place is raised.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import msgspec

from drivefeed.domain.errors import NeedsAttention, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.budget import A_PERSONS, COST_MANY, COST_ONE
from drivefeed.sources.graph.claims import read_claims
from drivefeed.sources.graph.client import LARGEST_ANSWER
from drivefeed.sources.graph.errors import Refusal, Scene, broken, translate
from drivefeed.sources.graph.http import read_body

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.budget import Lane
    from drivefeed.sources.graph.client import GraphClient

_ABOUT_THE_PLACE = frozenset({400, 403, 404, 406, 410, 423})
_MOST_PAGES = 10_000
"""A listing that goes on for longer goes round in circles."""


class Refused(NeedsAttention):
    """Microsoft Graph refused to show a place; ``refusal`` says how."""

    def __init__(self, refusal: Refusal, asked: str) -> None:
        super().__init__(
            refusal.sentence(Scene.ITEM).replace(str(Scene.ITEM), asked),
            reason=Reason.ACCESS_DENIED,
        )
        self.refusal = refusal

    @property
    def status(self) -> int:
        """The status of the answer: one of 400, 403, 404, 406, 410 and 423."""
        return self.refusal.status


class Look:
    """Asks Graph for places through one account."""

    def __init__(self, client: GraphClient, lane: Lane) -> None:
        self._client = client
        self._lane = lane

    @property
    def account(self) -> GraphAccount:
        """The account that is asked through."""
        return self._client.account

    async def permissions(self) -> frozenset[str] | None:
        """Return what the account's token says it may do; None where the token does not say."""
        token = await self._client.credential.get_token(self.account.scope)
        claims = read_claims(token.token)
        return claims.permissions if claims else None

    async def ask(
        self, path: str, asked: str, *, cost: int = COST_ONE, **headers: str
    ) -> dict[str, Any]:
        """Return one answer.

        Args:
            path: below the version, encoded, with its query; or a whole link of Graph's own,
                which is not followed to another host.
            asked: what is asked for, in words.
            cost: resource units it costs.
            headers: with ``_`` for ``-``.

        Raises:
            Refused: the place is not shown.
            DrivefeedError: everything else that can go wrong; see ``translate``.
        """
        client = self._client
        url = path if path.startswith("http") else f"{client.account.base_url}{path}"
        response = await client._send(  # noqa: SLF001 (one of us, but for what a refusal means)
            lambda: client.raw_request(url),
            Scene.ITEM,
            lane=self._lane,
            cost=cost,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
            patience=A_PERSONS,
        )
        try:
            if response.status_code >= httpx.codes.BAD_REQUEST:
                await self._refuse(await client.refusal(response), asked)
            await client.went_through(response)
            try:
                body = await read_body(response, LARGEST_ANSWER)
            except httpx.HTTPError as error:
                raise broken(error, Scene.ITEM) from error
        finally:
            await response.aclose()
        return _object_of(body, asked)

    async def _refuse(self, refusal: Refusal, asked: str) -> None:
        if refusal.throttles:
            raise await self._client.throttled(refusal, Scene.ITEM)
        if refusal.status in _ABOUT_THE_PLACE:
            raise Refused(refusal, asked)
        raise translate(refusal, Scene.ITEM)

    async def pages(self, path: str, asked: str) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield the pages of a listing, to its end; every nextLink is followed.

        Raises:
            Refused: as :meth:`ask`.
            Transient: a page is none, or the listing does not end.
        """
        link = path
        for _ in range(_MOST_PAGES):
            page = await self.ask(link, asked, cost=COST_MANY)
            found = page.get("value")
            if not isinstance(found, list):
                raise Transient(f"Microsoft Graph answered with no list when asked for {asked}.")
            yield [one for one in found if isinstance(one, dict)]
            link = str(page.get("@odata.nextLink") or "")
            if not link:
                return
        raise Transient(f"The listing of {asked} did not end after {_MOST_PAGES} pages.")

    async def listing(self, path: str, asked: str) -> list[dict[str, Any]]:
        """Return a whole listing, where it is known to be short."""
        return [one async for page in self.pages(path, asked) for one in page]


def _object_of(body: bytes, asked: str) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Transient(f"Microsoft Graph's answer about {asked} cannot be read.") from error
    if not isinstance(found, dict):
        raise Transient(f"Microsoft Graph's answer about {asked} is no object.")
    return found


def text_of(found: dict[str, Any], *names: str) -> str:
    """Return the first of an answer's fields that is text and not empty, else an empty text.

    A dot leads into an object: ``parentReference.driveId``.
    """
    for name in names:
        value: Any = found
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, str) and value:
            return value.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    return ""


def encoded(name: str) -> str:
    """Return a name or id as one segment of a path."""
    # A segment of dots alone would be followed, not sent.
    return quote(name, safe="!,") if name.strip(".") else name.replace(".", "%2E")
