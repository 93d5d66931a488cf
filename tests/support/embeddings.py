"""A service that embeds: OpenAI's API and Ollama's over real HTTP, with faults on demand.

Its vectors count the words of a text, so that texts with the same words are close, and every text
has the same vector each time.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "sk-canary-5d1f0c2b7a"


def vector_of(text: str, dimension: int) -> list[float]:
    """Return the vector of a text: not of length one, as some services send them."""
    vector = [0.0] * dimension
    for word in ["", *"".join(c if c.isalnum() else " " for c in text.lower()).split()]:
        digest = hashlib.blake2b(word.encode(), digest_size=4).digest()
        vector[int.from_bytes(digest) % dimension] += 1.0 if word else 0.01
    return vector


@dataclass
class Fault:
    """What goes wrong with one request.

    Attributes:
        status: answered instead of vectors.
        retry_after: the header's value.
        body: sent with the status.
        dimension: of the vectors, if another than promised.
        slow: seconds until the answer.
        cut: the connection ends in the middle of the answer.
        count: answer so many vectors more than asked for; negative for fewer.
    """

    status: int | None = None
    retry_after: str | None = None
    body: Any = None
    dimension: int | None = None
    slow: float = 0.0
    cut: bool = False
    count: int = 0


@dataclass
class EmbeddingService:
    """The running service.

    Attributes:
        key: the bearer token it wants; None for none.
        dimension: of its vectors.
        most_characters: a longer text is refused as too long.
        faults: what goes wrong with the next requests, one each.
        requests: path and body of each request.
    """

    url: str = ""
    key: str | None = KEY
    dimension: int = 64
    most_characters: int = 4_000
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """All texts that were sent."""
        return [text for _, body in self.requests for text in body["input"]]


class _Handler(BaseHTTPRequestHandler):
    service: ClassVar[EmbeddingService]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # the name that http.server asks for
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        service = self.service
        service.requests.append((self.path, body))
        fault = service.faults.pop(0) if service.faults else Fault()
        time.sleep(fault.slow)
        given = self.headers.get("Authorization")
        if service.key and given != f"Bearer {service.key}":
            message = f"Incorrect API key provided: {str(given)[7:]}."
            return self._answer(401, {"error": {"message": message, "code": "invalid_api_key"}})
        if fault.status:
            return self._answer(fault.status, fault.body or {}, retry_after=fault.retry_after)
        if any(len(text) > service.most_characters for text in body["input"]):
            words = "the input length exceeds the context length"
            is_ollama = self.path == "/api/embed"
            return self._answer(400, {"error": words if is_ollama else {"message": words}})
        if body["model"] == "absent":
            return self._answer(404, {"error": f"model '{body['model']}' not found"})
        dimension = fault.dimension or body.get("dimensions") or service.dimension
        vectors = [vector_of(text, dimension) for text in body["input"]]
        if fault.count < 0:
            del vectors[fault.count :]
        vectors += vectors[:1] * max(fault.count, 0)
        return self._answer(200, self._shaped(vectors), cut=fault.cut)

    def _shaped(self, vectors: list[list[float]]) -> dict[str, Any]:
        if self.path == "/v1/embeddings":
            rows = [
                {"object": "embedding", "index": index, "embedding": vector}
                for index, vector in enumerate(vectors)
            ]
            return {"object": "list", "data": rows[::-1], "usage": {"prompt_tokens": 1}}
        assert self.path == "/api/embed", self.path
        return {
            "embeddings": [
                [number / math.hypot(*vector) for number in vector] for vector in vectors
            ]
        }

    def _answer(
        self, status: int, body: Any, *, retry_after: str | None = None, cut: bool = False
    ) -> None:
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        # Who was killed or has waited long enough does not listen any more.
        with suppress(ConnectionError):
            self.wfile.write(content[: len(content) // 2] if cut else content)
        self.close_connection = cut

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def handle(self) -> None:
        # Whoever asked may have been killed.
        with suppress(ConnectionError):
            super().handle()


@contextmanager
def embedding_service(**wanted: Any) -> Iterator[EmbeddingService]:
    """Run the service on a free port of this machine."""
    service = EmbeddingService(**wanted)
    handler = type("Handler", (_Handler,), {"service": service})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        service.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )
        thread.start()
        try:
            yield service
        finally:
            server.shutdown()
            thread.join()
