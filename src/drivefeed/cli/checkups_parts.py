"""What the doctor finds of the parts: Redis, store, index, backend, daemon, page and board."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from drivefeed import __version__, bootstrap
from drivefeed.catalog.examination import has_sent
from drivefeed.catalog.listing import has_live
from drivefeed.catalog.subscriptions import all_subscriptions
from drivefeed.domain.errors import DrivefeedError
from drivefeed.outward import outbound_of
from drivefeed.services.checkups.finding import Finding, green, red, yellow
from drivefeed.services.checkups.notifications import look_at_address
from drivefeed.services.checkups.queues import redis_findings
from drivefeed.services.gate import existing

if TYPE_CHECKING:
    from drivefeed.cli.checkups import Doctor

STORE_SECONDS = 30.0
BACKEND_SECONDS = 30.0
BOARD_QUEUES = Path(__file__).parents[3] / "bull-board" / "queues.json"
"""What the board lists; there in a checkout only."""
_SENTENCE = "The harbour master reads this sentence.\n"


class PartChecks:
    """Checks of everything but accounts and what is read through them."""

    def __init__(self, doctor: Doctor) -> None:
        self._doctor = doctor
        self._settings = doctor.settings

    def add_all(self) -> None:
        """Add the checks of queue, store, index and backend."""
        add = self._doctor.examination.add
        add(
            "queue",
            self.queue,
            needs=["disk"],
            after=["catalog"],
            remedy="Start Redis or correct its URL; nothing is lost meanwhile.",
        )
        add(
            "store",
            self.store,
            needs=["disk"],
            seconds=STORE_SECONDS,
            remedy="Repair the store or its settings; what waits goes on by itself.",
        )
        add(
            "index",
            self.index,
            needs=["disk", "catalog"],
            seconds=STORE_SECONDS,
            remedy="Repair it, or the settings that name it; what waits goes on by itself.",
        )
        add(
            "backend",
            self.backend,
            needs=["disk"],
            seconds=BACKEND_SECONDS,
            remedy="Install what is missing: pip install 'drivefeed[local]' or [local,ocr].",
        )

        if self._settings.notifications.url:
            add(
                "notifications",
                self.notifications,
                needs=["network"],
                after=["catalog"],
                remedy="Correct notifications.url; drives are asked for changes meanwhile.",
            )
        if self._settings.backends:
            add(
                "backends",
                self.other_backends,
                seconds=BACKEND_SECONDS,
                remedy="Look at the backend and its section of the settings; what waits goes on.",
            )

    async def daemon(self) -> list[Finding]:
        """Ask the daemon how it is."""
        client = self._doctor.client
        if client is None:
            remedy = "Start it with 'drivefeed up', or a demo with 'drivefeed demo'."
            return [yellow("daemon", "No daemon runs on this data folder.", remedy)]
        health = (await client.get("/healthz")).json()
        version = health.get("version", "")
        if version != __version__:
            words = f"The daemon is version {version or 'unknown'}; this command is {__version__}."
            return [
                yellow("daemon", words, "Restart the daemon, or use its own version's command.")
            ]
        if health.get("stuck"):
            words = " ".join(health["stuck"].values())
            return [red("daemon", words, "Restart the daemon; nothing is lost.")]
        if health["down"]:
            words = "; ".join(f"{part}: {said}" for part, said in health["down"].items())
            remedy = "Repair the part; the work goes on by itself when it answers."
            return [yellow("daemon", f"Waits for parts that do not answer: {words}", remedy)]
        stall = health["longest_stall_ms"]
        words = f"Process {health['pid']}, version {version}, answers; longest stall {stall} ms."
        return [green("daemon", words)]

    async def web(self) -> list[Finding]:
        """Ask the status page that the daemon serves too whether it answers."""
        if self._doctor.client is None:
            return []
        import httpx

        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(  # noqa: S104 - asked, not bound
            self._settings.web_host, self._settings.web_host
        )
        url = f"http://{host}:{self._settings.web_port}"
        remedy = "Restart the daemon; if the port is taken, choose another web_port."
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=5.0) as client:
                answer = await client.get(f"{url}/healthz")
        except httpx.HTTPError as error:
            return [red("web", f"{url} does not answer ({type(error).__name__}).", remedy)]
        if not answer.is_success:
            return [red("web", f"{url} answers {answer.status_code}.", remedy)]
        return [green("web", f"The status page answers at {url}.")]

    async def notifications(self) -> list[Finding]:
        """Call the address under which Microsoft is to call, as Microsoft does at first."""
        doctor = self._doctor
        known = await all_subscriptions(doctor.catalog) if doctor.catalog is not None else []
        found = await look_at_address(
            self._settings.notifications.url,
            outbound_of(self._settings),
            subscription_id=known[0].subscription_id if known else None,
            token=f"Validation: drivefeed doctor {doctor.around.ids.new()}",
            is_running=doctor.client is not None,
        )
        return [found]

    async def queue(self) -> list[Finding]:
        """Ask Redis whether it answers and is set up as a queue has to be."""
        from drivefeed.queue.embedded import embedded_url
        from drivefeed.queue.examination import examine

        settings = self._settings
        if settings.redis_url is not None:
            url: str | None = settings.redis_url.get_secret_value()
        else:
            url = embedded_url(settings.data_dir / "queue")
        if url is None:
            words = "The embedded queue server is not running."
            return [yellow("queue", words, "Nothing: it starts and ends with the daemon.")]
        catalog = self._doctor.catalog
        sent = catalog is not None and await has_sent(catalog)
        return list(redis_findings(await examine(url, prefix=settings.queue_prefix), sent=sent))

    async def store(self) -> list[Finding]:
        """Write, conditionally write, read and delete a small object."""
        folder = self._settings.data_dir / bootstrap.STORE_FOLDER
        if (
            self._settings.s3 is None
            and not folder.exists()
            and os.access(existing(folder), os.W_OK)
        ):
            return [green("store", f"The folder '{folder}' is made at the first start.")]
        store = bootstrap.open_store(self._settings)
        try:
            await store.check()
        finally:
            await store.aclose()
        words = "Writes, refuses to write twice under one key, reads and deletes."
        return [green("store", words)]

    async def index(self) -> list[Finding]:
        """Ask the index whether it answers and was made for the embedding model."""
        from drivefeed.account_parts import open_ring
        from drivefeed.embedding import difference
        from drivefeed.embedding_of_orgs import Embeddings

        catalog = self._doctor.catalog
        if catalog is None:
            return []
        words = await difference(self._settings, catalog)
        remedy = "Run 'drivefeed reindex', or put the former setting back."
        told = [yellow("embedding", words, remedy)] if words else []
        if self._doctor.client is not None and not self._settings.qdrant_url:
            words = "Embedded, opened by the daemon, fits the embedding model."
            return [green("index", words), *told]
        embeddings = Embeddings(self._settings, catalog, open_ring(self._settings))
        library = await embeddings.open_library()
        try:
            await library.check()
            count = await library.count()
        finally:
            await library.aclose()
        if not count and await has_live(catalog):
            words = "It holds nothing, though documents were indexed: it was moved or emptied."
            remedy = "Run 'drivefeed reindex --anew'; it is built from the copies in the store."
            return [red("index", words, remedy), *told]
        words = f"Answers, fits the embedding model, holds {count} points."
        return [green("index", words), *told]

    async def backend(self) -> list[Finding]:
        """Let a reading process read a sentence, as it would read a document."""
        from drivefeed.assembly import extraction_limits
        from drivefeed.indexer.extract import ExtractionPool, ocr
        from drivefeed.indexer.model import Rejected

        if self._settings.extraction.ocr:
            ocr.require_ocr()
        with tempfile.TemporaryDirectory(prefix="drivefeed-check-") as folder:
            path = Path(folder) / "check.txt"
            path.write_text(_SENTENCE, encoding="utf-8")
            async with ExtractionPool(size=1) as pool:
                try:
                    limits = extraction_limits(self._settings.extraction)
                    read = await pool.extract(path, name="check.txt", limits=limits)
                except Rejected as error:
                    remedy = (
                        "Give reading processes more (extraction.memory_mb, .cpu_seconds and "
                        ".wall_seconds in the settings)."
                    )
                    return [red("backend", f"A reading process failed: {error}", remedy)]
        pages = len(read.pages)
        return [green("backend", f"Embedded; a reading process starts and reads ({pages} page).")]

    async def other_backends(self) -> list[Finding]:
        """Ask each backend of the settings whether it is there and takes our secret."""
        around = bootstrap.Surroundings.real()
        store = bootstrap.open_store(self._settings)
        backends = bootstrap.open_backends(self._settings, around, store)
        found: list[Finding] = []
        try:
            for name in backends.names:
                try:
                    await backends.named(name).check()
                except DrivefeedError as error:
                    remedy = f"Look at it with 'drivefeed backend check {self._url_of(name)}'."
                    found.append(red("backends", str(error), remedy, subject=name))
                else:
                    words = f"'{name}' answers, speaks the contract and takes our secret."
                    found.append(green("backends", words, subject=name))
        finally:
            await backends.aclose()
            await store.aclose()
        return found

    def _url_of(self, name: str) -> str:
        return self._settings.backends[name].url

    def board(self) -> list[Finding]:
        """Compare the board's list of queues with the table in code; only in a checkout."""
        from drivefeed.queue.table import queues_json

        if not BOARD_QUEUES.is_file():
            return []
        try:
            listed = json.loads(BOARD_QUEUES.read_text(encoding="utf-8"))["queues"]
        except (ValueError, KeyError):
            listed = None
        if listed != queues_json(self._settings.queue_prefix)["queues"]:
            words = "bull-board/queues.json does not list the queues of this version."
            return [yellow("board", words, "Write it anew with 'make format'.")]
        return [green("board", "Lists the queues of this version.")]
