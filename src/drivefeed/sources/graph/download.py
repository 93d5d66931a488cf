"""The content of one file as one unbroken stream.

Graph redirects to a pre-authenticated URL on another host. It is fetched right before it is used,
by a client that knows no credential, and neither kept nor logged; when the connection breaks or
the URL has expired, a fresh one is fetched and the stream goes on from the byte it had reached.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING

import httpx

from drivefeed.domain.errors import DrivefeedError, InUse, PartDown, Throttled, Transient
from drivefeed.sources.graph.budget import BRIEF, Lane
from drivefeed.sources.graph.download_hosts import download_url
from drivefeed.sources.graph.errors import Scene, broken
from drivefeed.sources.graph.parts import PARTIAL, Again, Changed, encoded, extent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from drivefeed.sources.graph.client import GraphClient

LARGEST_CHUNK = 1024 * 1024
_GOOD_CHUNK = 256 * 1024
_PIECE = LARGEST_CHUNK - _GOOD_CHUNK
TRIES_WITHOUT_PROGRESS = 5
PROGRESS = 64 * 1024
"""Bytes a connection must bring before the tries are counted anew."""
SLOWEST = 120.0
"""Seconds a connection may take for :data:`PROGRESS` bytes, not counting the consumer's time."""
PATIENCE = 120.0
"""Seconds a stream under way waits for a closed gate, rather than begin again later."""
_MOST_REDIRECTS = 5
_REFUSING = frozenset({401, 403, 404, 410})
"""Answers of a download host to a URL that is not good any more, or never was."""


class GraphDownload:
    """The content of one file; see :class:`drivefeed.ports.Download`.

    Attributes:
        size: bytes of the whole content, where the download host says so.
        etag: the download host's eTag, where it has one.
    """

    def __init__(self, client: GraphClient, drive_id: str, item_id: str, lane: Lane) -> None:
        self.size: int | None = None
        self.etag: str | None = None
        self._client = client
        self._drive_id = drive_id
        self._item_id = item_id
        self._lane = lane
        self._stack = AsyncExitStack()
        self._response: httpx.Response | None = None
        self._received = 0
        """Bytes the consumer has, or will have before anything else happens."""
        self._skip = 0
        """Bytes of the present answer that the consumer has already."""
        self._started = False
        self._decoded = False
        """Whether our offsets count decoded bytes, which no Range can name."""
        self._direct = False
        self._tries = 0
        self._refusals = 0

    async def open(self) -> None:
        """Connect, with a fresh URL for each failure of the download host.

        Raises:
            DrivefeedError: Graph refused, or the download host failed too often.
        """
        try:
            await self._connect()
        except Again as failure:
            await self._reconnect(failure)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stack.aclose()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes; see :class:`drivefeed.ports.Download`.

        Raises:
            Transient: the stream broke too often, or the file changed meanwhile.
        """
        while True:
            kept: list[bytes] = []
            size = 0
            begun = self._received
            failure: DrivefeedError | Again | None = None
            try:
                async with aclosing(self._pieces()) as pieces:
                    async for piece in pieces:
                        kept.append(piece)
                        size += len(piece)
                        self._received += len(piece)
                        if size >= _GOOD_CHUNK:
                            yield b"".join(kept)
                            kept, size = [], 0
            except (httpx.HTTPError, httpx.StreamError) as error:
                failure = broken(error, Scene.HOST)
            except Again as error:
                failure = error
            if kept:
                yield b"".join(kept)
            failure = failure or self._short()
            if failure is None:
                return
            if self._received - begun >= PROGRESS:
                self._tries = self._refusals = 0
            await self._reconnect(failure)

    def _short(self) -> DrivefeedError | None:
        """Compare what arrived with what was announced."""
        if self.size is None or self._received == self.size:
            return None
        text = f"Of {self.size} bytes of the file, {self._received} arrived."
        if self._received > self.size:
            raise Transient(text)
        return Transient(text)

    async def _pieces(self) -> AsyncGenerator[bytes]:
        """Yield what the present answer adds, in pieces that fit into a chunk.

        Raises:
            Again: it brings too little to be worth waiting for.
        """
        assert self._response is not None
        source = self._response.aiter_bytes() if self._decoded else self._response.aiter_raw()
        since, waited, slow = monotonic(), 0.0, 0
        async for data in source:
            waited, slow = waited + monotonic() - since, slow + len(data)
            if slow >= PROGRESS:
                waited, slow = 0.0, 0
            elif waited > SLOWEST:
                raise Again(Transient(f"The download brought {slow} bytes in {waited:.0f} s."))
            dropped = min(self._skip, len(data))
            self._skip -= dropped
            for start in range(dropped, len(data), _PIECE):
                yield data[start : start + _PIECE]
            since = monotonic()

    # --- connecting ----------------------------------------------------------------------------

    async def _reconnect(self, failure: DrivefeedError | Again) -> None:
        """Try again until it works or the tries are used up; for a refused URL once."""
        while True:
            last = failure.last if isinstance(failure, Again) else failure
            self._refusals += isinstance(failure, Again) and failure.refused
            self._tries += 1
            if self._tries > TRIES_WITHOUT_PROGRESS or self._refusals > 1:
                raise last
            if self._tries > 1:
                pause = 2 ** (self._tries - 2) * (0.5 + self._client.ids.fraction() / 2)
                await self._client.clock.sleep(pause)
            try:
                await self._connect()
            except Again as error:
                failure = error
            except (Transient, Throttled, PartDown) as error:
                if not self._started or isinstance(error, Changed):
                    raise
                if isinstance(error, Throttled) and error.seconds > PATIENCE:
                    raise
                failure = error
            else:
                return

    async def _connect(self) -> None:
        """Ask Graph for the content and leave ``_response`` where the stream goes on."""
        await self._stack.aclose()
        client = self._client
        headers = {"Accept-Encoding": "identity"}
        if self._direct:
            headers |= self._from_here()
        response = await self._stack.enter_async_context(
            client.stream(
                lambda: client.content_request(self._drive_id, self._item_id),
                Scene.CONTENT,
                drive_id=self._drive_id,
                lane=self._lane,
                headers=headers,
                patience=PATIENCE if self._started else BRIEF,
            )
        )
        self._direct = response.is_success
        hops = 0
        while not response.is_success:
            if hops == _MOST_REDIRECTS:
                raise Again(Transient("The download was redirected too often."))
            hops += 1
            url = download_url(
                response.headers.get("location"),
                response.request.url,
                base_url=client.account.base_url,
                more=client.account.outbound.download_hosts,
            )
            await self._stack.aclose()
            response = await self._ask_host(url)
        self._take(response)

    async def _ask_host(self, url: httpx.URL) -> httpx.Response:
        """Ask a download host, without any credential."""
        client = self._client
        headers = {"Accept-Encoding": "identity", "Accept": "*/*"} | self._from_here()
        request = client.hosts.build_request("GET", url, headers=headers)
        try:
            response = await client.hosts.send(request, stream=True, auth=None)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            way = client.account.outbound
            raise Again(broken(error, Scene.HOST, url=str(url), outbound=way)) from None
        self._stack.push_async_callback(response.aclose)
        if response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise Changed
        if response.status_code >= httpx.codes.BAD_REQUEST:
            refusal = await client.refusal(response)
            ours = await client.throttled(refusal, Scene.HOST)
            if isinstance(ours, InUse) or not isinstance(ours, Transient):
                raise ours
            raise Again(ours, refused=response.status_code in _REFUSING)
        return response

    def _from_here(self) -> dict[str, str]:
        """Headers that ask for the rest, provided it is still the same file."""
        if not self._received or self._decoded:
            return {}
        wanted = {"Range": f"bytes={self._received}-"}
        if self.etag and not self.etag.startswith("W/"):
            wanted["If-Range"] = self.etag
        return wanted

    def _take(self, response: httpx.Response) -> None:
        """Accept an answer, checking that it continues the file we began with."""
        total, start = extent(response)
        etag = response.headers.get("etag")
        if not self._started:
            if response.status_code == PARTIAL:
                raise Again(Transient("The download host sent a part of the file unasked."))
            self.size, self.etag, self._started = total, etag, True
            self._decoded = encoded(response)
        else:
            same_etag = etag == self.etag or (etag is None and start is not None)
            same_size = total == self.size or total is None or self.size is None
            if not (same_etag and same_size):
                raise Changed
            if start is None and self._received and self.etag is None:
                # A whole file again, and nothing to show that it is the same one.
                raise Changed
            if start is not None and start != self._received:
                raise Again(Transient("The download host sent another part than was asked for."))
        self._skip = self._received if start is None else 0
        self._response = response


@asynccontextmanager
async def open_download(
    client: GraphClient, drive_id: str, item_id: str, lane: Lane
) -> AsyncIterator[GraphDownload]:
    """Open a file's content and close it whatever happens."""
    download = GraphDownload(client, drive_id, item_id, lane)
    try:
        await download.open()
        yield download
    finally:
        await download.aclose()
