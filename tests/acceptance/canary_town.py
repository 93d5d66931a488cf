"""A daemon among planted canaries: every way to sign in, failures with secrets in their words."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self
from unittest.mock import patch

import httpx

from drivefeed.account_parts import open_ring
from drivefeed.bootstrap import open_memory
from drivefeed.catalog.accounts import all_accounts
from drivefeed.catalog.credentials import CredentialKind, load
from drivefeed.settings import load_settings
from graphsim.access_tokens import AccessTokens
from graphsim.downloads import Downloads
from graphsim.seals import Seals
from graphsim.tenancy import KeyCredential
from support import forks
from support.commands import run_command
from support.evidence import rows_in
from support.processes import environment, until
from support.signing import sign_in
from support.valkey import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from graphsim.serving import GraphSim

FAULT = "acceptance.canary_fault"
BOOM_BYTES = 977
"""The size of the file whose storing raises an exception full of secrets."""
TEXT = "Periwinkle-halyard-79153 is what the harbour master calls it"
WRONG_SECRET = "wr0ng~secret~Qk7dJ2mZ8vXc4"
WEBHOOK_SECRET = "whsec-4b9f27d1c6e83a50"
SLACK_PATH = "T09KQ2/B71XW/hJ5sLq8NvR3yTz0c"
MAIL_PASSWORD = "mail-Vd81-Lp02-Xs47"
S3_KEY, S3_SECRET = "AKIDCANARY7Q2M", "s3/Secret+K3y/9xWm2LbT6pQz"
QDRANT_KEY = "qd-key-58c1e09a7f34"
REDIS_PASSWORD = "redis-pw-e61b0c94af"


@dataclass
class Issued:
    """What graphsim handed out: tokens and signed addresses."""

    access: list[str] = field(default_factory=list)
    refresh: list[str] = field(default_factory=list)
    signed: list[str] = field(default_factory=list)

    @contextmanager
    def watching(self) -> Iterator[Self]:
        """Write down what is issued while the block lasts."""
        make, url, seal = AccessTokens.make, Downloads.url, Seals.seal

        def made(one: Any, *words: Any, **more: Any) -> str:
            token = make(one, *words, **more)
            self.access.append(token)
            return token

        def signed(one: Any, *words: Any) -> str:
            address = url(one, *words)
            self.signed.append(address.partition("tempauth=")[2])
            return address

        def sealed(one: Any, purpose: str, facts: Any) -> str:
            token = seal(one, purpose, facts)
            if purpose == "refresh":
                self.refresh.append(token)
            return token

        with (
            patch.object(AccessTokens, "make", made),
            patch.object(Downloads, "url", signed),
            patch.object(Seals, "seal", sealed),
        ):
            yield self


class Collector:
    """An OTLP endpoint that keeps what it is sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        kept = self.bodies

        class Receiver(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                kept.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Town:
    """The installation: settings, commands with all that they printed, and the daemon."""

    def __init__(self, home: Path, sim: GraphSim, redis_url: str) -> None:
        self.home = home
        self.sim = sim
        self.data = home / "data"
        self.port = free_port()
        self.printed: dict[str, str] = {}
        self.key = ""
        self.redis_url = redis_url
        self._process: forks.Fork | None = None

    @property
    def log(self) -> Path:
        return self.home / "up.log"

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self, *words: str, typed: str = "") -> str:
        """Run a command, whatever comes of it; what it printed is kept for the scan."""
        with patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()))):
            done = run_command("--data", str(self.data), *words, cwd=self.home, ok=range(256))
        name = " ".join(words[:3])
        self.printed[name] = self.printed.get(name, "") + done.stdout + done.stderr
        return done.stdout

    def place(self) -> list[str]:
        ends = self.sim.endpoints
        return [
            *("--tenant", ends.tenant_id, "--client-id", ends.client_id),
            *("--authority", ends.login_url, "--graph-url", ends.graph_url),
            *("--ca-file", ends.ca_file),
        ]

    def settle_in(self) -> None:
        """Make the installation: settings with secrets, an account of every kind, a key."""
        ends = self.sim.endpoints
        self.command("init")
        account = {
            "name": "declared",
            "tenant_id": ends.tenant_id,
            "client_id": ends.client_id,
            "client_secret": ends.client_secret,
            "authority": ends.login_url,
            "graph_url": ends.graph_url,
            "ca_file": ends.ca_file,
        }
        lines = [
            f"redis_url = {json.dumps(self.redis_url)}",
            *(
                "poll_seconds = 0.3",
                "poll_slowest_seconds = 0.3",
                'log_level = "debug"',
                "log_json = true",
            ),
            *(f"web_port = {self.port}", "ru_per_minute = 1000000", "shutdown_seconds = 5"),
            *("[attempts]", "transfer = 2", "[[notices]]", 'name = "hook"', 'kind = "webhook"'),
            *(f'url = "http://127.0.0.1:{free_port()}/in"', f'secret = "{WEBHOOK_SECRET}"'),
            *("[[notices]]", 'name = "chat"', 'kind = "slack"'),
            f'url = "http://127.0.0.1:{free_port()}/{SLACK_PATH}"',
            *("[[notices]]", 'name = "mail"', 'kind = "smtp"', 'host = "127.0.0.1"'),
            *(f"port = {free_port()}", 'user = "post"', f'password = "{MAIL_PASSWORD}"'),
            *('from = "a@post.invalid"', 'to = ["b@post.invalid"]'),
            "[watch]",
            "look_seconds = 1",
            "[[accounts]]",
            *(f"{name} = {json.dumps(value)}" for name, value in account.items()),
            "[[connections]]",
            *('account = "declared"', f'drive_id = "{self.sim.memory.id}"', 'name = "Harbour"'),
        ]
        path = self.data / "drivefeed.toml"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        path.chmod(0o600)
        self.command(
            "account", "add", "sealed", *self.place(), "--secret-stdin", typed=ends.client_secret
        )
        self.command(
            "account", "add", "refused", *self.place(), "--secret-stdin", typed=WRONG_SECRET
        )
        made = json.loads(
            self.command(
                "account", "add", "certified", *self.place(), "--make-certificate", "--json"
            )
        )
        public = made["certificate"].encode()
        self.sim.directory.app.certificates.append(KeyCredential(public))
        self.command("account", "test", "certified")
        self.printed["account add person"] = sign_in(
            *("--data", str(self.data), "account", "add", "person", *self.place()),
            cwd=self.home,
            ca_file=ends.ca_file,
        )
        self.key = json.loads(self.command("key", "create", "scan", "--json"))["key"]
        # The key is shown once, where it is made; nobody else may show it.
        self.printed = {name: text.replace(self.key, "") for name, text in self.printed.items()}

    def private_key(self) -> str:
        """Return the private key of the certificate that was made here, as PEM."""

        async def read() -> str:
            with patch.dict(os.environ, {"DRIVEFEED_CONFIG": str(self.data / "drivefeed.toml")}):
                settings = load_settings(data_dir=self.data)
            async with open_memory(settings) as catalog:
                (row,) = [one for one in await all_accounts(catalog) if one.name == "certified"]
                kind = CredentialKind.CERTIFICATE
                found = await load(catalog, open_ring(settings), row.account_id, kind)
                assert found is not None
                return found.plain.decode()

        return asyncio.run(read())

    def start(self, collector: Collector) -> None:
        with self.log.open("ab") as log:
            self._process = forks.Fork(
                FAULT,
                [
                    *(str(self.home / "words.txt"), str(BOOM_BYTES)),
                    *("--data", str(self.data), "up"),
                ],
                cwd=self.home,
                env=environment(
                    OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_BSP_SCHEDULE_DELAY="200"
                ),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def wait(self, *, searchable: int, failed: int) -> None:
        """Wait until so many files are searchable and so many failed for good."""

        def done() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, self.log.read_text()[-3000:]
            with suppress(Exception):
                (row,) = rows_in(
                    self.data,
                    "SELECT (SELECT count(*) FROM documents WHERE live_import_id IS NOT NULL) AS l,"
                    " (SELECT count(*) FROM imports WHERE state = 'rejected'"
                    " OR attention IS NOT NULL) AS f",
                )
                return bool(row["l"] >= searchable and row["f"] >= failed)
            return False

        until(done, seconds=90, what=lambda: self.log.read_text()[-4000:])

    def metrics(self) -> bytes:
        door = json.loads((self.data / "daemon.json").read_text())
        transport = httpx.HTTPTransport(uds=door["socket"])
        with httpx.Client(transport=transport, base_url="http://daemon", timeout=60) as client:
            return client.get("/metrics").content + client.get("/healthz").content

    def pages(self) -> Iterator[tuple[str, bytes]]:
        """Yield every page that links lead to, and every answer of the API, with its headers.

        Search shows text of documents, which is what it is for, and is left out.
        """
        headers = {"Authorization": f"Bearer {self.key}"}
        with httpx.Client(base_url=self.base, headers=headers, timeout=30) as client:
            waiting = ["/", "/v1/", "/v1/openapi.json", "/sign-in", "/v1/connections/nothing"]
            seen: set[str] = set()
            while waiting:
                address = waiting.pop()
                if address in seen or address.startswith(("/search", "/v1/search", "/events")):
                    continue
                seen.add(address)
                answer = client.get(address)
                told = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
                yield f"page {address}", told.encode() + b"\n\n" + answer.content
                found = re.findall(r'(?:href|hx-get|src)="(/[^"#]*)"', answer.text)
                found += [f"/v1{one}" for one in found if one.startswith("/connections")]
                waiting += [one.replace("&amp;", "&") for one in found]
            assert len([one for one in seen if "/files/" in one]) > 1, seen
