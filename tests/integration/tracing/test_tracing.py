"""Spans reach a real OTLP endpoint over HTTP."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from drivefeed.tracing import configure_tracing, span, stop_tracing

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Collector(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        super().__init__(("127.0.0.1", 0), _Receiver)


class _Receiver(BaseHTTPRequestHandler):
    server: _Collector

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[_Collector]:
    server = _Collector()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_spans_arrive_with_their_ids(
    collector: _Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = f"http://127.0.0.1:{collector.server_address[1]}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
    assert configure_tracing()

    with span("transfer", import_id="i-1", job_id="transfer-i-1-1"):
        pass
    with pytest.raises(ValueError, match="broken"), span("submit", import_id="i-1"):
        raise ValueError("broken")
    stop_tracing()

    spans = [
        one
        for body in collector.bodies
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for one in scope.spans
    ]
    by_name = {one.name: one for one in spans}
    facts = {pair.key: pair.value.string_value for pair in by_name["transfer"].attributes}
    assert facts == {"drivefeed.import_id": "i-1", "drivefeed.job_id": "transfer-i-1-1"}
    assert by_name["submit"].status.code == 2


def test_nothing_is_exported_without_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)

    assert not configure_tracing()
    with span("transfer"):
        pass
