"""The sample backend of ``examples/backend``, served in threads of this process."""

from __future__ import annotations

import importlib.util
import sys
import threading
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from drivefeed.backends.signing import Credential
from drivefeed.services.conformance.bench import Bench
from drivefeed.services.conformance.documents import serving
from drivefeed.services.conformance.speaker import Speaker
from drivefeed.system import SystemClock, SystemIds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

SECRET = "a-secret-of-the-tests-4711"
_PATH = Path(__file__).parents[2] / "examples" / "backend" / "backend.py"


def _loaded() -> Any:
    name = "sample_ingestion_backend"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _PATH)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


sample = _loaded()


@contextmanager
def served(backend: Any) -> Iterator[str]:
    """Serve a backend on a free port; yields its URL."""
    server = sample.serve(backend)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@asynccontextmanager
async def bench_at(url: str, *, way: str = "hmac", deadline: float = 30.0) -> AsyncIterator[Bench]:
    """Put a backend on the bench."""
    credential = Credential(SECRET, way)  # type: ignore[arg-type] - a test says which
    async with (
        httpx.AsyncClient(trust_env=False, timeout=60.0) as client,
        serving("127.0.0.1") as documents,
    ):
        speaker = Speaker(url, credential, client, clock=SystemClock(), ids=SystemIds())
        yield Bench(speaker, documents, deadline=deadline)
