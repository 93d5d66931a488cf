"""The daemon's door without a daemon: a socket that answers what a test tells it to."""

from __future__ import annotations

import json
import os
import socketserver
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from drivefeed.web.door import DOOR_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def daemon_door(data: Path) -> Iterator[dict[str, Any]]:
    """Serve a data folder's socket while the block lasts; yields the answers by path."""
    answers: dict[str, Any] = {}

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = json.dumps(answers[self.path]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def address_string(self) -> str:
            return "door"

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    path = data / "drivefeed.sock"
    server = socketserver.ThreadingUnixStreamServer(str(path), Door)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    (data / DOOR_FILE).write_text(json.dumps({"socket": str(path), "pid": os.getpid()}))
    try:
        yield answers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        path.unlink()
        (data / DOOR_FILE).unlink()
