"""One account's way to Graph: msgraph-sdk's requests and sign-in, native answers.

The SDK's typed models cost 1.7 s of CPU for 200 items and its ``content`` call holds a file in
memory, so requests are built and authenticated by the SDK and then sent by us, as streams. Its
retry and redirect middleware are left out: waiting is the gate's business, and a redirect is a
download URL that must not see our token.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import httpx

from drivefeed.domain.errors import DrivefeedError, NeedsAttention, Throttled, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.auth import REFUSED_FOR
from drivefeed.sources.graph.budget import BRIEF, COST_ONE, Lane
from drivefeed.sources.graph.claims import read_claims
from drivefeed.sources.graph.errors import (
    Refusal,
    Scene,
    broken,
    refusal_of,
    translate,
)
from drivefeed.sources.graph.http import READ_TIMEOUT, open_http, read_body
from drivefeed.sources.graph.links import check_endpoint
from drivefeed.sources.graph.refusals import forbidden
from drivefeed.sources.graph.requests import GraphRequests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from drivefeed.ports import Clock, Ids
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.auth import Credential
    from drivefeed.sources.graph.budget import Gate

LARGEST_ANSWER = 64 * 1024 * 1024
"""Bytes of metadata taken from one answer; a page of 1,000 items is about 2 MB."""
_LARGEST_REFUSAL = 64 * 1024
_UNAUTHORIZED = 401
_DOUBTFUL = frozenset({400, 404})


class GraphClient(GraphRequests):
    """Sends requests of one account, through its gate, and translates what goes wrong."""

    def __init__(
        self,
        account: GraphAccount,
        *,
        credential: Credential,
        gate: Gate,
        clock: Clock,
        ids: Ids,
        read_timeout: float = READ_TIMEOUT,
    ) -> None:
        """Put the parts together; imports the SDK (a third of a second), so use :meth:`open`."""
        from kiota_abstractions.authentication import BaseBearerTokenAuthenticationProvider
        from kiota_authentication_azure.azure_identity_access_token_provider import (
            AzureIdentityAccessTokenProvider,
        )
        from kiota_http.observability_options import ObservabilityOptions
        from msgraph._version import VERSION
        from msgraph.graph_request_adapter import GraphRequestAdapter
        from msgraph_core import APIVersion, GraphClientFactory
        from msgraph_core.middleware import GraphTelemetryHandler
        from msgraph_core.middleware.options import GraphTelemetryHandlerOption

        check_endpoint(account.base_url)
        self.gate = gate
        self.clock = clock
        self.ids = ids
        self.credential = credential
        self._unwelcome: tuple[int, NeedsAttention] | None = None
        """Until when Graph need not be asked, because it refused even a fresh token."""
        telemetry = GraphTelemetryHandlerOption(api_version=APIVersion.v1, sdk_version=VERSION)
        self._http = GraphClientFactory.create_with_custom_middleware(
            [GraphTelemetryHandler(options=telemetry)], client=open_http(account, read_timeout)
        )
        self.hosts = open_http(account, read_timeout)
        """For download hosts; knows no credential."""
        host = httpx.URL(account.base_url).host
        tokens = AzureIdentityAccessTokenProvider(
            # Of the credential, the provider uses get_token alone.
            cast(Any, credential),
            None,
            scopes=[account.scope],
            allowed_hosts=[host],
        )
        self._adapter = GraphRequestAdapter(
            BaseBearerTokenAuthenticationProvider(tokens), client=self._http
        )
        self._adapter.base_url = account.base_url
        self._adapter.observability_options = ObservabilityOptions(include_euii_attributes=False)
        super().__init__(account, self._adapter)

    @classmethod
    async def open(
        cls,
        account: GraphAccount,
        *,
        credential: Credential,
        gate: Gate,
        clock: Clock,
        ids: Ids,
        read_timeout: float = READ_TIMEOUT,
    ) -> GraphClient:
        """Make a client in a thread."""
        return await asyncio.to_thread(
            cls,
            account,
            credential=credential,
            gate=gate,
            clock=clock,
            ids=ids,
            read_timeout=read_timeout,
        )

    # --- sending -------------------------------------------------------------------------------

    async def read(
        self,
        build: Callable[[], Any],
        scene: Scene,
        *,
        drive_id: str,
        lane: Lane,
        cost: int = COST_ONE,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Send a request for metadata and return the body.

        Args:
            build: makes the request; called again for the retry with a fresh token.
            scene: what is asked for.
            drive_id: the drive it belongs to, asked about where the answer leaves doubt.
            lane: how urgent it is.
            cost: resource units it costs.
            headers: additional ones.

        Raises:
            DrivefeedError: as :func:`translate` says.
        """
        async with self.stream(
            build, scene, drive_id=drive_id, lane=lane, cost=cost, headers=headers
        ) as response:
            if not response.is_success:
                raise Transient(
                    f"Microsoft Graph redirected the request for {scene} "
                    f"({response.status_code}), which it does not do."
                )
            try:
                return await read_body(response, LARGEST_ANSWER)
            except httpx.HTTPError as error:
                raise broken(error, scene) from error

    @asynccontextmanager
    async def answer(
        self, build: Callable[[], Any], *, lane: Lane, cost: int = COST_ONE
    ) -> AsyncIterator[httpx.Response]:
        """Send a request and yield the open answer, whatever it is; the caller judges it."""
        response = await self._send(
            build, Scene.ITEM, lane=lane, cost=cost, headers=None, patience=BRIEF
        )
        try:
            yield response
        finally:
            await response.aclose()

    @asynccontextmanager
    async def stream(
        self,
        build: Callable[[], Any],
        scene: Scene,
        *,
        drive_id: str,
        lane: Lane,
        cost: int = COST_ONE,
        headers: Mapping[str, str] | None = None,
        patience: float = BRIEF,
    ) -> AsyncIterator[httpx.Response]:
        """Send a request and yield the open answer: a success or a redirect.

        Raises:
            DrivefeedError: as :func:`translate` says.
        """
        response = await self._send(
            build, scene, lane=lane, cost=cost, headers=headers, patience=patience
        )
        try:
            if response.status_code >= httpx.codes.BAD_REQUEST:
                refusal = await self.refusal(response)
                await response.aclose()
                raise await self.judge(refusal, scene, drive_id, lane)
            await self.gate.passed()
            if response.is_redirect:
                # Read to its end, the connection can be used again.
                await self.refusal(response)
            yield response
        finally:
            await response.aclose()

    async def _send(
        self,
        build: Callable[[], Any],
        scene: Scene,
        *,
        lane: Lane,
        cost: int,
        headers: Mapping[str, str] | None,
        patience: float,
    ) -> httpx.Response:
        """Send through the gate; after a 401, once more with a fresh token."""
        if self._unwelcome and self.clock.now() < self._unwelcome[0]:
            raise NeedsAttention(str(self._unwelcome[1]), reason=self._unwelcome[1].reason)
        for last in (False, True):
            await self.gate.enter(cost, lane, patience=patience)
            generation = self.credential.generation
            request_information = build()
            # Expands the URL template once, where the SDK would for each look at it.
            request_information.url = request_information.url
            for name, value in (headers or {}).items():
                request_information.headers.add(name, value)
            request_information.headers.add("client-request-id", self.ids.new())
            try:
                request = await self._adapter.convert_to_native_async(request_information)
                response: httpx.Response = await self._http.send(request, stream=True)
            except DrivefeedError:
                raise
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                way = self.account.outbound
                raise broken(error, scene, url=self.account.base_url, outbound=way) from error
            if response.status_code != _UNAUTHORIZED or last:
                return response
            refusal = await self.refusal(response)
            await response.aclose()
            await self.credential.renew(generation, refusal.claims)
        raise AssertionError

    async def refusal(self, response: httpx.Response) -> Refusal:
        """Read an answer that is none, as far as it can be read."""
        try:
            body = await read_body(response, _LARGEST_REFUSAL)
        except (httpx.HTTPError, DrivefeedError):
            body = b""
        return refusal_of(response, body, now=self.clock.now())

    async def throttled(self, refusal: Refusal, scene: Scene) -> DrivefeedError:
        """Translate a refusal, closing the gate where it asks to slow down."""
        error = translate(refusal, scene)
        if isinstance(error, Throttled):
            error.seconds = await self.gate.close(refusal.told) or error.seconds
        return error

    async def judge(
        self, refusal: Refusal, scene: Scene, drive_id: str, lane: Lane
    ) -> DrivefeedError:
        """Translate a refusal; where it could mean the whole drive, ask for the drive first.

        Nothing is taken for gone while its drive does not answer for itself.
        """
        if refusal.status in _DOUBTFUL and scene is not Scene.DRIVE:
            await self.read(
                lambda: self.drive_request(drive_id, ("id",)),
                Scene.DRIVE,
                drive_id=drive_id,
                lane=lane,
            )
        error = await self.throttled(refusal, scene)
        if refusal.status == _UNAUTHORIZED and isinstance(error, NeedsAttention):
            self._unwelcome = (self.clock.now() + REFUSED_FOR, error)
        if isinstance(error, NeedsAttention) and error.reason is Reason.ACCESS_DENIED:
            token = await self.credential.get_token(self.account.scope)
            return forbidden(error, read_claims(token.token), scene)
        return error

    async def aclose(self) -> None:
        """Close connections."""
        await self._http.aclose()
        await self.hosts.aclose()
        await self.credential.close()
