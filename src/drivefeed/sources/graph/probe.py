"""The permission probe: what a sign-in may do, found out by looking and by trying.

The token is read for what was consented; then a drive is asked for its root, its changes and one
byte of a file's content, as a sync would. Nothing is written, and neither token nor URLs are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

import httpx
import msgspec

from drivefeed.domain.errors import DrivefeedError, NeedsAttention, Throttled
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.addresses import parse_address
from drivefeed.sources.graph.budget import A_PERSONS, COST_MANY, COST_ONE, Lane
from drivefeed.sources.graph.claims import read_claims
from drivefeed.sources.graph.download_hosts import download_url
from drivefeed.sources.graph.errors import Scene, broken
from drivefeed.sources.graph.http import read_body
from drivefeed.sources.graph.looking import Look
from drivefeed.sources.graph.probe_report import Check, ProbeReport, skew_of, verdict_of
from drivefeed.sources.graph.refusals import forbidden, no_onedrive
from drivefeed.sources.graph.resolve import resolve

if TYPE_CHECKING:
    from drivefeed.sources.graph.claims import TokenClaims
    from drivefeed.sources.graph.client import GraphClient

_LARGEST = 4 * 1024 * 1024
_NOT_THERE = frozenset({Reason.DRIVE_GONE, Reason.FOLDER_GONE, Reason.MISCONFIGURED})
"""Of a place that somebody named: there is none such; the sentence says what to name instead."""
_ITEM_FIELDS = "id,name,size,file,webUrl,parentReference"


async def probe(
    client: GraphClient,
    *,
    drive_id: str | None = None,
    url: str | None = None,
    user: str | None = None,
    is_connected: bool = False,
) -> ProbeReport:
    """Try what an account may do.

    Args:
        client: the account's way to Graph.
        drive_id: the drive to try; without any target, the person's own, or only the sign-in.
        url: a folder's address in any form that people paste.
        user: somebody, by user principal name, whose OneDrive is to be tried.
        is_connected: whether the drive is followed already, so that it is gone if it is not found;
            one that somebody names may be mistyped.
    """
    return await _Probe(client, is_connected=is_connected).run(drive_id, url, user)


class _Stop(Exception):
    """A check failed, so that the ones after it make no sense."""


class _Probe:
    def __init__(self, client: GraphClient, *, is_connected: bool) -> None:
        self._client = client
        self._is_connected = is_connected
        self._drive_id: str | None = None
        """The drive that somebody named by its id."""
        self._claims: TokenClaims | None = None
        self._checks: list[Check] = []
        self._skew: float | None = None
        self._place = ""
        self._files: int | None = None
        self._person: str | None = None
        """Whose OneDrive is asked for right now."""

    async def run(self, drive_id: str | None, url: str | None, user: str | None) -> ProbeReport:
        """Do all checks, as far as they make sense."""
        try:
            await self._sign_in()
            await self._drive(drive_id, url, user)
        except _Stop:
            pass
        return verdict_of(
            self._client.account,
            self._claims,
            tuple(self._checks),
            skew=self._skew,
            place=self._place,
            files=self._files,
        )

    async def _sign_in(self) -> None:
        account = self._client.account
        try:
            token = await self._client.credential.get_token(account.scope)
        except DrivefeedError as error:
            self._failed("sign_in", error)
        self._claims = read_claims(token.token)
        self._passed("sign_in", f"Microsoft accepts the sign-in of account '{account.name}'.")

    async def _drive(self, drive_id: str | None, url: str | None, user: str | None) -> None:
        if url is not None:
            self._place = url
            drive_id = await self._resolved(url)
        elif drive_id is not None:
            self._drive_id = None if self._is_connected else drive_id
        else:
            if user is None and self._claims is not None and self._claims.user is None:
                return
            self._person = user or "the person who signed in"
            path = f"/users/{quote(user, safe='@')}" if user else "/me"
            found = await self._ask("drive", f"{path}/drive?$select=id,name,webUrl", Scene.DRIVE)
            self._person = None
            drive_id = str(found.get("id"))
        base = f"/drives/{quote(drive_id, safe='!')}/root"
        root = await self._ask("drive", f"{base}?$select=id,name,webUrl", Scene.DRIVE)
        self._place = self._place or str(root.get("webUrl") or drive_id)
        self._passed("drive", "The drive answers.")
        options = f"$select={_ITEM_FIELDS}&$top=50"
        page = await self._ask("changes", f"{base}/delta?{options}", Scene.ENUMERATE, COST_MANY)
        self._passed("changes", "Its contents and changes may be listed.")
        files = [one for one in _items(page) if one.get("file") is not None]
        if files or "@odata.nextLink" not in page:
            self._files = len(files)
        full = [one for one in files if one.get("size")]
        if full:
            await self._content(drive_id, str(full[0].get("id")))
        else:
            self._checks.append(
                Check("content", None, "There is no file on its first page to try.")
            )

    async def _resolved(self, url: str) -> str:
        try:
            look = Look(self._client, Lane.CHANGES)
            return (await resolve(look, parse_address(url))).drive_id
        except DrivefeedError as error:
            self._failed("drive", error)

    async def _content(self, drive_id: str, item_id: str) -> None:
        client = self._client
        try:
            request = client.content_request
            response = await self._sent(lambda: request(drive_id, item_id), COST_ONE, Scene.CONTENT)
            location = response.headers.get("location")
            if location:
                target = download_url(
                    location,
                    response.request.url,
                    base_url=client.account.base_url,
                    more=client.account.outbound.download_hosts,
                )
                answer = await client.hosts.get(target, headers={"Range": "bytes=0-0"})
                if answer.is_error:
                    refusal = await client.refusal(answer)
                    self._failed("content", await client.throttled(refusal, Scene.HOST))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self._failed("content", broken(error, Scene.HOST))
        except DrivefeedError as error:
            self._failed("content", error)
        self._passed("content", "The content of a file may be read.")

    async def _ask(
        self, name: str, path: str, scene: Scene, cost: int = COST_ONE
    ) -> dict[str, Any]:
        """Ask for a document; a refusal ends the probe with a failed check of this name."""
        client, url = self._client, f"{self._client.account.base_url}{path}"
        try:
            response = await self._sent(lambda: client.raw_request(url), cost, scene)
            found = msgspec.json.decode(await read_body(response, _LARGEST))
        except httpx.HTTPError as error:
            way = client.account.outbound
            self._failed(name, broken(error, scene, url=url, outbound=way))
        except msgspec.MsgspecError:
            found = None
        except DrivefeedError as error:
            self._failed(name, error)
        return found if isinstance(found, dict) else {}

    async def _sent(self, build: Any, cost: int, scene: Scene) -> httpx.Response:
        """Send a request; its answer is a success or a redirect.

        Raises:
            DrivefeedError: what it was refused for.
        """
        client = self._client
        response = await client._send(  # noqa: SLF001 (one of us, but for what a refusal means)
            build, scene, lane=Lane.CHANGES, cost=cost, headers=None, patience=A_PERSONS
        )
        self._skew = skew_of(response.headers, now=client.clock.now(), before=self._skew)
        if response.is_error:
            refusal = await client.refusal(response)
            await response.aclose()
            error = await client.throttled(refusal, scene)
            if self._person is not None:
                error = no_onedrive(refusal, self._person) or error
            if isinstance(error, NeedsAttention):
                error = forbidden(error, self._claims, scene)
            raise error
        await client.went_through(response)
        return response

    def _passed(self, name: str, sentence: str) -> None:
        self._checks.append(Check(name, True, sentence))

    def _failed(self, name: str, error: DrivefeedError) -> NoReturn:
        reason, words = getattr(error, "reason", None), str(error)
        if isinstance(error, Throttled):
            # It says nothing of what may be read; only later can anybody know.
            self._checks.append(Check(name, None, words, Reason.THROTTLED))
            raise _Stop
        if name == "drive" and not self._is_connected and reason in _NOT_THERE:
            if self._drive_id is not None and reason is Reason.DRIVE_GONE:
                words = (
                    f"There is no drive '{self._drive_id}' that account "
                    f"'{self._client.account.name}' can see. Check its id, or give the address of "
                    f"a folder or a person instead; 'drivefeed browse' lists drives. {words}"
                )
            # The remedies of these reasons are for what was there once.
            reason = None
        self._checks.append(Check(name, False, words, reason))
        raise _Stop


def _items(page: dict[str, Any]) -> list[dict[str, Any]]:
    value = page.get("value")
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
