"""Row 6: planted secrets, tokens, signed addresses and text of documents are found nowhere else.

Text of a document may stand in the object store and in the index, and in what search answers.
Secrets of accounts stand sealed in the catalog, those of the settings in the settings' file.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from acceptance.canary_town import (
    BOOM_BYTES,
    MAIL_PASSWORD,
    QDRANT_KEY,
    REDIS_PASSWORD,
    S3_KEY,
    S3_SECRET,
    SLACK_PATH,
    TEXT,
    WEBHOOK_SECRET,
    WRONG_SECRET,
    Collector,
    Issued,
    Town,
)
from drivefeed.tracing import configure_tracing, span, stop_tracing
from integration.board.conftest import board_packages
from integration.board.rig import BOARD_PASSWORD, BoardServer
from integration.graph_source.kit import sim_state
from support import valkey
from support.canaries import (
    Found,
    Scanner,
    forms,
    in_file,
    in_folder,
    in_redis,
    in_sqlite,
    in_zip,
)
from support.commands import run_command
from support.echo import running_echo
from support.processes import until
from support.threaded_sim import threaded_sim
from support.valkey import ValkeyServer, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from graphsim.serving import GraphSim

__all__ = ["board_packages"]

pytestmark = pytest.mark.slow

NAMES = {
    "Whelk-and-Sons ledger.txt",
    "Refused-whelk.txt",
    "Elsewhere-whelk.txt",
    "Torn-whelk.docx",
    "Boom-whelk.txt",
}
PROOF = "Pr00f-canary/4c1e+77"


@dataclass
class Scene:
    """What is left of a run for the scan: everything but the processes."""

    town: Town
    issued: Issued
    valkey: ValkeyServer
    collector: Collector
    board: httpx.Client
    secrets: dict[str, str | bytes]


def _plant(sim: GraphSim, issued: Issued) -> None:
    """Files, among them some whose failures carry secrets in their words."""
    drive = sim.memory
    texts = {
        "Whelk-and-Sons ledger.txt": f"{TEXT}.\n" * 40,
        "Refused-whelk.txt": f"{TEXT}, refused.\n",
        "Elsewhere-whelk.txt": f"{TEXT}, elsewhere.\n",
        "Torn-whelk.docx": f"{TEXT}, torn.\n",
        "Boom-whelk.txt": f"{TEXT}, boom.\n".ljust(BOOM_BYTES),
    }
    for name, text in texts.items():
        drive.create_file(name, text.encode())
    stolen = sim.access_token()
    said = (
        f"Request with Authorization: Bearer {stolen} and client_secret="
        f"{sim.endpoints.client_secret} for https://tenant.sharepoint.invalid/_layouts/15/"
        f"download.aspx?tempauth={SIGNED} failed."
    )
    sim.faults.add(
        "status", op="content", name="Refused-whelk.txt", status=403, message=said, count=-1
    )
    sim.faults.add(
        *("status",),
        op="content",
        name="Elsewhere-whelk.txt",
        status=302,
        message=said,
        count=-1,
        headers={"Location": f"http://[bad/_download/x?tempauth={SIGNED}&sig={SIGNED}"},
    )
    sim.faults.add("status", op="token", status=503, message=said, count=1)
    sim.faults.add("status", op="download", status=500, message=said, count=1)


SIGNED = "v1.eyJzaXRlaWQiOiJjYW5hcnkifQ.Zm9yZ2Vk-signed-url-canary"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, board_packages: Path) -> Iterator[Scene]:
    """Run the whole scenario once."""
    home = tmp_path_factory.mktemp("canaries")
    (home / "valkey").mkdir()
    issued = Issued()
    patched = pytest.MonkeyPatch()
    patched.setattr(valkey, "PASSWORD", REDIS_PASSWORD)
    server = ValkeyServer(home / "valkey", free_port())
    board: BoardServer | None = None
    with issued.watching(), threaded_sim(state=sim_state()) as sim, Collector() as collector:
        town = Town(home, sim, server.url)
        try:
            server.start()
            board = BoardServer(
                home / "board",
                {"DRIVEFEED_REDIS_URL": server.url, "BULL_BOARD_PASSWORD": BOARD_PASSWORD},
            )
            _plant(sim, issued)
            town.settle_in()
            _write_words(town, issued)
            town.start(collector)
            town.wait(searchable=1, failed=4)
            _fail_everywhere(town)
            auth = ("admin", BOARD_PASSWORD)
            with httpx.Client(base_url=board.wait_until_ready(), auth=auth, timeout=30) as client:
                yield Scene(town, issued, server, collector, client, _secrets(town, issued))
        finally:
            town.stop()
            if board is not None:
                board.end()
            server.kill()
            patched.undo()


def _write_words(town: Town, issued: Issued) -> None:
    """What an exception might say: every secret there is, with and without its name."""
    found = _secrets(town, issued)
    # The daemon does not open this person's sign-in, so refresh tokens come in MSAL's form alone.
    # Pieces of keys and tokens, and signed addresses out of their address, are nobody's words.
    bare = [
        value
        for name, value in found.items()
        if not name.startswith(("signed", "private", "refresh")) and not name.endswith("its end")
    ]
    named = "; ".join(f"{value!r}" for value in bare)
    words = (
        f"Bad request with {{'Authorization': 'Bearer {issued.access[0]}'}} to "
        f"https://x.sharepoint.invalid/download.aspx?tempauth={SIGNED}&ApiVersion=2.0, cache "
        f'{{"RefreshToken": {{"secret": "{issued.refresh[0]}"}}}}, queue {town.redis_url}, key '
        f"{town.private_key()} and all of: {named}"
    )
    (town.home / "words.txt").write_text(words, encoding="utf-8")


def _fail_everywhere(town: Town) -> None:
    """Run what prints and writes down errors."""
    town.command("account", "test", "refused")
    for channel in ("hook", "chat", "mail"):
        town.command("notices", "test", channel)
    for words in (("status",), ("imports",), ("why", "Refused-whelk.txt"), ("notices", "list")):
        town.command(*words)
        town.command(*words, "--json")
    town.command("why", "Elsewhere-whelk.txt")
    town.command("why", "Torn-whelk.docx")
    town.command("why", "Boom-whelk.txt")
    town.command("verify")
    town.command("doctor")
    town.command("doctor", "--json")
    town.command("secrets", "status")
    town.command("account", "list", "--json")
    for name, more in (("veiled.zip", ()), ("named.zip", ("--with-names",))):
        town.command("support-bundle", "-o", name, "--log", str(town.log), *more)


def _secrets(town: Town, issued: Issued) -> dict[str, str | bytes]:
    pem = town.private_key()
    key_lines = pem.split("-----")[2].split()
    found: dict[str, str | bytes] = {
        "client secret": town.sim.endpoints.client_secret,
        "wrong client secret": WRONG_SECRET,
        "private key": "".join(key_lines)[200:320],
        "private key, a line": key_lines[5],
        "secret.key": (town.data / "secret.key").read_text().strip(),
        "API key": town.key,
        "Redis password": REDIS_PASSWORD,
        "webhook secret": WEBHOOK_SECRET,
        "webhook address": SLACK_PATH,
        "SMTP password": MAIL_PASSWORD,
        "signed address": SIGNED,
    }
    for kind, tokens in (("access", issued.access), ("refresh", issued.refresh)):
        assert tokens, kind
        found |= {f"{kind} token {number}": one for number, one in enumerate(tokens[:40])}
        found |= {
            f"{kind} token {number}, its end": one[-40:] for number, one in enumerate(tokens[:40])
        }
    found |= {f"signed address {number}": one for number, one in enumerate(issued.signed[:40])}
    return found


def _places(scene: Scene) -> Iterator[tuple[str, bytes]]:
    """Yield everything that secrets and text must not be in."""
    town = scene.town
    yield from in_file(town.log)
    yield from ((f"printed by {name}", text.encode()) for name, text in town.printed.items())
    yield from in_sqlite(town.data / "catalog.sqlite")
    yield from in_redis(scene.valkey.url)
    yield from in_folder(scene.valkey.folder)
    yield from _board_pages(scene.board)
    yield from in_zip((town.home / "veiled.zip").read_bytes())
    yield from in_zip((town.home / "named.zip").read_bytes())
    yield from town.pages()
    yield "metrics", town.metrics()
    yield from (("span", body) for body in list(scene.collector.bodies))
    yield from in_file(town.home / "board" / "board.log")


def _board_pages(board: httpx.Client) -> Iterator[tuple[str, bytes]]:
    """Yield the board's page, its lists of jobs by state, and every job with its log."""
    yield "board /", board.get("/").content
    queues = board.get("/api/queues").json()["queues"]
    assert len(queues) >= 7
    for queue in queues:
        name = queue["name"]
        for status in ("latest", "completed", "failed", "delayed", "waiting", "active"):
            asked = {"activeQueue": name, "status": status, "jobsPerPage": 100}
            answer = board.get("/api/queues", params=asked)
            yield f"board {name} {status}", answer.content
            for one in answer.json()["queues"]:
                for job in one.get("jobs", ()):
                    page = board.get(f"/api/queues/{name}/{job['id']}")
                    yield f"board {name} {job['id']}", page.content
                    logs = board.get(f"/api/queues/{name}/{job['id']}/logs")
                    yield f"board {name} {job['id']} logs", logs.content


def _told(found: list[Found]) -> list[str]:
    lines = {f"{one.canary} ({one.form}) in {one.place}: {one.around!r}" for one in found}
    return sorted(lines)


def test_the_scene_is_what_it_should_be(scene: Scene) -> None:
    """The scan says nothing unless all of it took place."""
    town = scene.town
    printed = "".join(town.printed.values())
    assert "AADSTS7000215" in printed
    accounts = json.loads(
        run_command("--data", str(town.data), "account", "list", "--json", cwd=town.home).stdout
    )
    states = {one["name"]: one["state"] for one in accounts}
    assert states == {
        **dict.fromkeys(("declared", "sealed", "certified", "person"), "ok"),
        "refused": "misconfigured",
    }
    told = {one["part"]: one["colour"] for one in json.loads(town.printed["doctor --json"])}
    assert (told["daemon"], told["web"], told["queue"]) == ("green", "green", "green")
    assert scene.collector.bodies
    assert (scene.valkey.folder / "appendonlydir").is_dir()
    failed = scene.board.get("/api/queues", params={"activeQueue": "transfer", "status": "failed"})
    jobs = [one for queue in failed.json()["queues"] for one in queue.get("jobs", ())]
    assert any("Traceback" in "".join(job["stacktrace"]) for job in jobs)
    # What may be where: text in store and index, secrets of the settings in their file.
    scanner = Scanner({"text": TEXT})
    assert scanner.scan_all(in_folder(town.data / "objects"))
    assert scanner.scan_all(in_folder(town.data / "index"))


def test_no_secret_is_anywhere(scene: Scene) -> None:
    found = Scanner(scene.secrets).scan_all(_places(scene))
    assert not found, _told(found)
    everywhere_else = frozenset({"objects", "index", "drivefeed.toml", "secret.key"})
    found = Scanner(scene.secrets).scan_all(in_folder(scene.town.data, without=everywhere_else))
    assert not found, _told(found)


def test_text_of_documents_is_in_store_and_index_alone(scene: Scene) -> None:
    scanner = Scanner({"text": TEXT, "text, in part": TEXT[12:40]})
    found = scanner.scan_all(_places(scene))
    assert not found, _told(found)
    without = frozenset({"objects", "index"})
    found = scanner.scan_all(in_folder(scene.town.data, without=without))
    assert not found, _told(found)


def test_a_bundle_without_names_names_nobody(scene: Scene) -> None:
    ends = scene.town.sim.endpoints
    names: dict[str, str | bytes] = {name: name for name in NAMES} | {
        "a part of a name": "whelk",
        "connection": "Harbour",
        "person": ends.user_name,
        "tenant": ends.tenant_id,
        "app": ends.client_id,
        "drive": scene.town.sim.memory.id,
        "folder": str(scene.town.home),
        "recipient": "b@post.invalid",
        "mailbox": "post.invalid",
    }
    names = {name: value for name, value in names.items() if len(value) >= 5}
    bundle = (scene.town.home / "veiled.zip").read_bytes()
    found = [
        one
        for place, content in in_zip(bundle)
        for name, value in names.items()
        for form, needle in forms(value.encode() if isinstance(value, str) else value)
        if form in {"plain", "URL", "JSON"} and needle.lower() in content.lower()
        for one in [(name, form, place)]
    ]
    assert not found
    named = b"".join(content for _, content in in_zip((scene.town.home / "named.zip").read_bytes()))
    assert b"Harbour" in named
    listed = dict(in_zip(bundle))["bundle contents.txt"].decode()
    assert "doctor.json" in listed
    assert "tracebacks.txt" in listed
    assert "What was left out:" in listed


def test_services_that_repeat_what_they_were_sent_are_not_repeated(tmp_path: Path) -> None:
    """S3, Qdrant and receivers of notices that answer an error with everything they got."""
    with running_echo() as url:
        data = tmp_path / "data"
        data.mkdir(mode=0o700)
        config = data / "drivefeed.toml"
        config.write_text(
            f'qdrant_url = "{url}"\nqdrant_api_key = "{QDRANT_KEY}"\n'
            f'[s3]\nbucket = "papers"\nendpoint_url = "{url}"\nregion = "us-east-1"\n'
            f'access_key = "{S3_KEY}"\nsecret_key = "{S3_SECRET}"\n'
            f'[[notices]]\nname = "hook"\nkind = "webhook"\nurl = "{url}/{SLACK_PATH}"\n'
            f'secret = "{WEBHOOK_SECRET}"\n'
            f'[[notices]]\nname = "chat"\nkind = "slack"\nurl = "{url}/{SLACK_PATH}"\n'
        )
        config.chmod(0o600)
        printed: dict[str, str] = {}
        for words in (
            ("init",),
            *(("notices", "test", name) for name in ("hook", "chat")),
            ("search", "halyard"),
            ("doctor",),
            ("verify",),
            ("support-bundle", "-o", "b.zip", "--with-names"),
        ):
            done = run_command("--data", str(data), *words, cwd=tmp_path, ok=range(256))
            printed[" ".join(words)] = done.stdout + done.stderr
    assert "red" in printed["doctor"]
    assert "cannot" in printed["notices test chat"] or "403" in printed["notices test chat"]
    scanner = Scanner(
        {
            "S3 secret": S3_SECRET,
            "S3 key": S3_KEY,
            "Qdrant key": QDRANT_KEY,
            "webhook secret": WEBHOOK_SECRET,
            "webhook address": SLACK_PATH,
        }
    )
    found = scanner.scan_all((name, text.encode()) for name, text in printed.items())
    found += scanner.scan_all(in_zip((tmp_path / "b.zip").read_bytes()))
    found += scanner.scan_all(in_sqlite(data / "catalog.sqlite"))
    assert not found, _told(found)


# The scanner itself


@pytest.mark.parametrize("form", [form for form, _ in forms(PROOF.encode())])
def test_the_scanner_finds_every_form(form: str) -> None:
    needle = dict(forms(PROOF.encode()))[form]
    found = Scanner({"proof": PROOF}).scan("somewhere", b"noise " + needle + b" noise")
    assert [one.canary for one in found] == ["proof"]


def test_the_scanner_finds_what_stands_in_the_middle_of_something_encoded() -> None:
    import base64
    from urllib.parse import quote

    scanner = Scanner({"proof": PROOF})
    for before in range(7):
        around = b"x" * before + PROOF.encode() + b"yz"
        assert scanner.scan("", base64.b64encode(around))
        assert scanner.scan("", base64.urlsafe_b64encode(around))
        assert scanner.scan("", around.hex())
        assert scanner.scan("", quote(around.decode(), safe=""))
        assert scanner.scan("", json.dumps({"key": around.decode()}))
    assert not scanner.scan("", b"nothing of the kind" * 1000)


PROVEN = Scanner({"proof": PROOF})


def _finds(pieces: Iterator[tuple[str, bytes]]) -> set[str]:
    """Return the places in which the canary that is planted on purpose is found."""
    return {one.place for one in PROVEN.scan_all(pieces)}


def test_without_one_on_purpose_none_is_found(scene: Scene) -> None:
    assert not _finds(_places(scene))


def test_the_scanner_finds_one_in_a_log(scene: Scene, tmp_path: Path) -> None:
    log = tmp_path / "up.log"
    shutil.copy(scene.town.log, log)
    with log.open("a") as file:
        file.write(json.dumps({"event": f"said {PROOF}"}) + "\n")
    assert _finds(in_file(log))


def test_the_scanner_finds_one_in_the_catalog(tmp_path: Path) -> None:
    copy = tmp_path / "catalog.sqlite"
    with closing(sqlite3.connect(copy)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE facts (name TEXT, value TEXT, bytes BLOB)")
        database.commit()
        assert not _finds(in_sqlite(copy))
        # In the WAL alone, and cut up by the ends of pages.
        database.execute("INSERT INTO facts VALUES ('a', ?, NULL)", (f"{'x' * 9000}{PROOF}",))
        database.commit()
        assert "facts.value" in _finds(in_sqlite(copy))
        database.execute("DELETE FROM facts")
        database.execute("INSERT INTO facts VALUES ('a', NULL, ?)", (PROOF.encode(),))
        database.commit()
        assert {"facts.bytes", "catalog.sqlite-wal"} <= _finds(in_sqlite(copy))


def test_the_scanner_finds_one_in_redis_and_in_its_file(scene: Scene) -> None:
    with scene.valkey.client() as client:
        for plant in (
            lambda: client.set("proof", PROOF),
            lambda: client.hset("proof", "field", PROOF),
            lambda: client.hset("proof", PROOF, "value"),
            lambda: client.rpush("proof", PROOF),
            lambda: client.zadd("proof", {PROOF: 1}),
            lambda: client.sadd("proof", PROOF),
            lambda: client.xadd("proof", {"field": PROOF}),
        ):
            plant()
            assert _finds(in_redis(scene.valkey.url))
            client.delete("proof")
        assert not _finds(in_redis(scene.valkey.url))
    # The file remembers what the server forgot; it is written behind the answers.
    until(lambda: _finds(in_folder(scene.valkey.folder)), seconds=30, what="the append-only file")


def test_the_scanner_finds_one_on_the_board_and_in_a_bundle(scene: Scene) -> None:
    with scene.valkey.client() as client:
        job = client.zrange("drivefeed:transfer:failed", 0, 0)[0]
        key = f"drivefeed:transfer:{job}"
        reason = client.hget(key, "failedReason") or ""
        client.hset(key, "failedReason", f"{reason} {PROOF}")
        try:
            assert _finds(_board_pages(scene.board))
            scene.town.command("support-bundle", "-o", "proof.zip", "--with-names")
            bundle = (scene.town.home / "proof.zip").read_bytes()
            assert _finds(in_zip(bundle)) == {"bundle tracebacks.txt"}
            assert not _finds(iter([("as it is packed", bundle)]))
        finally:
            client.hset(key, "failedReason", reason)


def test_the_scanner_finds_one_on_pages_and_in_answers(scene: Scene) -> None:
    path = scene.town.data / "catalog.sqlite"
    with closing(sqlite3.connect(path, timeout=30)) as database:
        database.execute("UPDATE connections SET name = ?", (PROOF,))
        database.commit()
        found = _finds(scene.town.pages())
        database.execute("UPDATE connections SET name = 'Harbour'")
        database.commit()
    assert {"page /", "page /v1/"} <= found


def test_the_scanner_finds_one_in_metrics_and_spans(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = CollectorRegistry()
    Counter("proof", "A metric.", ["label"], registry=registry).labels(PROOF).inc()
    assert PROVEN.scan("metrics", generate_latest(registry))

    before = len(scene.collector.bodies)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", scene.collector.url)
    _export(PROOF)
    assert _finds(iter([("span", body) for body in scene.collector.bodies[before:]]))


def _export(value: str) -> None:
    from drivefeed.outbound import Outbound

    assert configure_tracing(Outbound())
    with span("proof", import_id=value):
        pass
    stop_tracing()
