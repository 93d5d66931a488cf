"""How faults of a Qdrant server reach us, over real HTTP."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from drivefeed.domain.errors import (
    DrivefeedError,
    NeedsAttention,
    Part,
    PartDown,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.vectors.server import ServerIndex


@contextmanager
def answering(status: int, headers: dict[str, str]) -> Iterator[str]:
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"status": {"error": "no"}}'
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - their name
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def raised(url: str) -> DrivefeedError:
    index = ServerIndex(url, api_key=None, model_name="m", dimension=2, timeout=5)
    try:
        with pytest.raises(DrivefeedError) as caught:
            await index.count()
    finally:
        await index.aclose()
    assert url in str(caught.value)
    return caught.value


async def test_no_server_is_a_part_that_is_down() -> None:
    with answering(200, {}) as url:
        pass
    error = await raised(url)
    assert isinstance(error, PartDown)
    assert error.part is Part.INDEX


@pytest.mark.parametrize(
    ("status", "headers", "kind"),
    [
        (400, {}, Transient),
        (401, {}, NeedsAttention),
        (403, {}, NeedsAttention),
        (429, {"Retry-After": "7"}, Throttled),
        (500, {}, PartDown),
        (503, {}, PartDown),
        (200, {}, PartDown),  # something that is not Qdrant
    ],
)
async def test_answers_become_our_errors(
    status: int, headers: dict[str, str], kind: type[DrivefeedError]
) -> None:
    with answering(status, headers) as url:
        error = await raised(url)
    assert type(error) is kind
    if isinstance(error, Throttled):
        assert error.seconds == 7
    if isinstance(error, NeedsAttention):
        assert error.reason is Reason.MISCONFIGURED
