"""An HTTP server on loopback that keeps what it was sent and answers as a test tells it to."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from email.message import Message


@dataclass
class Received:
    method: str
    path: str
    headers: Message
    body: bytes


@dataclass
class Receiver:
    """What arrived, and what is answered: the next of ``answers``, then always ``answer``."""

    port: int = 0
    scheme: str = "http"
    received: list[Received] = field(default_factory=list)
    answer: tuple[int, dict[str, str], bytes] = (200, {}, b"ok")
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.at("127.0.0.1")

    def at(self, host: str) -> str:
        return f"{self.scheme}://{host}:{self.port}"


@contextmanager
def running_receiver(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Run a receiver in threads while the block lasts."""
    receiver = Receiver(scheme="https" if tls else "http")

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            receiver.received.append(Received(self.command, self.path, self.headers, body))
            answers = receiver.answers
            status, headers, content = answers.pop(0) if answers else receiver.answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST  # noqa: N815 - the names of http.server

        def log_message(self, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
