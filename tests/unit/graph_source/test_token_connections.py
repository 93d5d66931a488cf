"""Requests for tokens do not depend on a connection that a server may have closed meanwhile."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from drivefeed.sources.graph.account import ClientSecret, GraphAccount
from drivefeed.sources.graph.msal_app import session_of
from support.authority import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class OneAnswer(BaseHTTPRequestHandler):
    """Answers the first request of a connection, and lets it fall at the second."""

    protocol_version = "HTTP/1.1"
    answered = False

    def do_GET(self) -> None:
        if self.answered:
            self.close_connection = True
            return
        self.answered = True
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[GraphAccount]:
    """An account whose sign-in service answers once on each connection."""
    authority = Authority(tmp_path / "ca")
    server = ThreadingHTTPServer(("127.0.0.1", 0), OneAnswer)
    context = authority.server_context("127.0.0.1")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield GraphAccount(
            account_id="account-1",
            name="mine",
            tenant_id="tenant",
            client_id="client",
            sign_in=ClientSecret("secret"),
            authority=f"https://127.0.0.1:{server.server_port}",
            ca_file=str(authority.ca),
        )
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_each_request_has_a_connection_of_its_own(impatient: GraphAccount) -> None:
    session = session_of(impatient)
    for _ in range(3):
        assert session.get(impatient.login_url).text == "ok"
    session.close()
