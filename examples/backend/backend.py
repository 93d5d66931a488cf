"""A small ingestion backend for drivefeed, to copy: the whole contract in one file.

It needs Python 3.11 and nothing else. It fetches a file by its URL (or reads it from drivefeed's
object store, where that is a folder), takes it as UTF-8 text, cuts it into chunks and keeps them in
SQLite. Put your own work in place of ``read`` and ``chunks_of``; the rest is what keeps a document
from being lost or imported twice. The contract itself is described in docs/backend-contract.md.

    python backend.py --secret-file secret.txt --port 8771 --database backend.sqlite
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import hmac
import json
import re
import secrets
import sqlite3
import threading
import time
import traceback
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

MOST_BYTES = 256 * 1024
MOST_FILE = 64 << 20
WINDOW = 300
ID = re.compile(r"[A-Za-z0-9._~:-]{1,64}")
KEY = re.compile(r"[A-Za-z0-9._~:-]{1,80}")
SIGNED = re.compile(r"t=(\d{1,12}),n=([A-Za-z0-9-]{8,64}),v1=([0-9a-f]{64})")
ROUND = r"/v1/documents/([^/]+)/imports/([^/]+)/rounds/(\d+)"

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    job_id TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, document_id TEXT NOT NULL,
    import_id TEXT NOT NULL, round INTEGER NOT NULL, seq INTEGER NOT NULL, name TEXT NOT NULL,
    content TEXT NOT NULL, call_url TEXT, state TEXT NOT NULL DEFAULT 'working',
    progress INTEGER NOT NULL DEFAULT 0, live INTEGER NOT NULL DEFAULT 0,
    pages INTEGER, chunks INTEGER, reason TEXT, detail TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS by_document ON jobs (document_id, seq);
CREATE TABLE IF NOT EXISTS chunks (job_id TEXT NOT NULL, number INTEGER NOT NULL, text TEXT);
CREATE INDEX IF NOT EXISTS by_job ON chunks (job_id);
"""


class Problem(Exception):
    """An answer that is no success: a status, and a code of the contract's list."""

    def __init__(self, status: int, code: str, detail: str, reason: str | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.body = {"code": code, "title": code.replace("_", " "), "status": status}
        self.body |= {"detail": detail} | ({"reason": reason} if reason else {})


class Refused(Exception):
    """A file that cannot be made searchable, for a reason of the contract's list."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Backend:
    """Jobs in SQLite, one thread for each job that is worked on."""

    def __init__(
        self,
        database: str = ":memory:",
        secret: str = "",
        way: str = "hmac",
        store: Path | None = None,
    ) -> None:
        self.secret, self.way, self.store = secret, way, store
        self.lock = threading.RLock()
        self.nonces: dict[str, int] = {}
        self.db = sqlite3.connect(database, check_same_thread=False, isolation_level=None)
        self.db.row_factory = sqlite3.Row
        self.db.executescript(SCHEMA)
        # What was under way when the process ended is begun again.
        for row in self.rows("SELECT job_id FROM jobs WHERE state = 'working'"):
            self.begin(row["job_id"])

    def rows(self, sql: str, *values: Any) -> list[sqlite3.Row]:
        with self.lock:
            return self.db.execute(sql, values).fetchall()

    # --- who may ask -------------------------------------------------------------------------

    def refusal(self, headers: Any, method: str, target: str, body: bytes) -> str:
        """Return why a request is not let in, or nothing. Everything is compared in full."""
        if self.way == "bearer":
            given = (headers.get("Authorization") or "").removeprefix("Bearer ")
            return "" if same(given, self.secret) else "The secret is missing or wrong."
        written = SIGNED.fullmatch(headers.get("Drivefeed-Signature") or "")
        if written is None:
            return "The signature is missing."
        at, nonce, given = int(written[1]), written[2], written[3]
        if not same(given, self.signed(at, nonce, method, target, body)):
            return "The signature does not fit the request."
        if abs(self.now() - at) > WINDOW:
            return "The signature is too old, or a clock is wrong."
        return "" if self.is_new(nonce) else "The signature was used before."

    def now(self) -> int:
        return int(time.time())

    def is_new(self, nonce: str) -> bool:
        """Remember a nonce for as long as its signature could be used again."""
        with self.lock:
            oldest = self.now() - 2 * WINDOW
            if len(self.nonces) > 10_000:
                self.nonces = {one: at for one, at in self.nonces.items() if at > oldest}
            if nonce in self.nonces:
                return False
            self.nonces[nonce] = self.now()
            return True

    # --- what is asked -----------------------------------------------------------------------

    def submit(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Take a submission. The key decides: it is in the table once, whoever comes first."""
        check(sent)
        job_id = hashlib.sha256(sent["key"].encode()).hexdigest()[:32]
        with self.lock:
            made = self.db.execute(
                "INSERT INTO jobs (job_id, key, document_id, import_id, round, seq, name, content,"
                " call_url) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (
                    *(job_id, sent["key"], sent["document_id"], sent["import_id"]),
                    *(sent["round"], sent["seq"], sent["name"], json.dumps(sent["content"])),
                    sent.get("call_url"),
                ),
            ).rowcount
        found = self.find(sent["key"])
        if made:
            self.begin(found["job_id"])
        (row,) = self.rows("SELECT * FROM jobs WHERE key = ?", sent["key"])
        if row["document_id"] != sent["document_id"]:
            raise Problem(409, "key_reused", "The key belongs to another document.")
        return found

    def find(self, key: str) -> dict[str, Any]:
        rows = self.rows("SELECT * FROM jobs WHERE key = ?", key)
        if not rows:
            raise Problem(404, "unknown_key", "No job was submitted under that key.")
        return self.told(rows[0])

    def status(self, job_id: str) -> dict[str, Any]:
        rows = self.rows("SELECT * FROM jobs WHERE job_id = ?", job_id)
        if not rows:
            raise Problem(404, "unknown_job", "There is no such job.")
        return self.told(rows[0])

    def told(self, row: sqlite3.Row) -> dict[str, Any]:
        names = ("job_id", "state", "progress", "pages", "chunks", "reason", "detail")
        return {name: row[name] for name in names} | {"live": bool(row["live"])}

    def cancel(self, job_id: str) -> dict[str, Any]:
        """End a job that is working; whoever works on it sees that when it wants to end it."""
        with self.lock:
            self.db.execute(
                "UPDATE jobs SET state = 'cancelled' WHERE job_id = ? AND state = 'working'",
                (job_id,),
            )
            job = self.status(job_id)
        return {"cancelled": job["state"] != "done", "job": job}

    def remove(self, document_id: str, import_id: str, round_: int) -> None:
        """Remove one round. Others stay, and nothing is said where there is none."""
        with self.lock:
            for row in self.rows(
                "SELECT job_id FROM jobs WHERE document_id = ? AND import_id = ? AND round = ?",
                *(document_id, import_id, round_),
            ):
                self.db.execute("DELETE FROM chunks WHERE job_id = ?", (row["job_id"],))
                self.db.execute("UPDATE jobs SET live = 0 WHERE job_id = ?", (row["job_id"],))

    def set_live(self, document_id: str, import_id: str, round_: int, live: bool) -> None:
        self.rows(
            "UPDATE jobs SET live = ? WHERE document_id = ? AND import_id = ? AND round = ?"
            " AND state = 'done'",
            *(int(live), document_id, import_id, round_),
        )

    def set_place(self, document_id: str, name: str, folders: list[str]) -> None:
        del folders  # keep them where your search filters by folder
        self.rows("UPDATE jobs SET name = ? WHERE document_id = ?", name, document_id)

    # --- the work ----------------------------------------------------------------------------

    def begin(self, job_id: str) -> None:
        threading.Thread(target=self.work, args=(job_id,), daemon=True).start()

    def work(self, job_id: str) -> None:
        (row,) = self.rows("SELECT * FROM jobs WHERE job_id = ?", job_id)
        try:
            text = self.read(json.loads(row["content"]), row["name"])
            self.rows("UPDATE jobs SET progress = 50 WHERE job_id = ?", job_id)
            self.done(row, chunks_of(text), pages=max(1, -(-len(text) // 3000)))
        except Refused as refused:
            self.refuse(job_id, refused.reason, str(refused))
        except Exception:  # whatever it is, the job must come to an end
            traceback.print_exc()
            self.refuse(job_id, "backend_refused", "The backend failed on this file; see its log.")
        if row["call_url"]:
            self.call(row["call_url"], row["key"])

    def call(self, url: str, key: str) -> None:
        """Say that a job ended, once. It would be asked for anyway, so no fault matters."""
        body = json.dumps({"key": key}).encode()
        headers = {"Content-Type": "application/json"} | self.shown(url, body)
        asked = urllib.request.Request(url, body, headers, method="POST")
        with contextlib.suppress(OSError), urllib.request.urlopen(asked, timeout=10):
            pass

    def shown(self, url: str, body: bytes) -> dict[str, str]:
        """Return the header that shows who calls."""
        if self.way == "bearer":
            return {"Authorization": f"Bearer {self.secret}"}
        at, nonce = self.now(), secrets.token_hex(16)
        written = self.signed(at, nonce, "POST", url[url.find("/v1/") :], body)
        return {"Drivefeed-Signature": f"t={at},n={nonce},v1={written}"}

    def signed(self, at: int, nonce: str, method: str, target: str, body: bytes) -> str:
        lines = (str(at), nonce, method, target, hashlib.sha256(body).hexdigest())
        return hmac.new(self.secret.encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()

    def read(self, content: dict[str, str], name: str) -> str:
        """Fetch the bytes and take the text out of them."""
        with self.opened(content) as file:
            body = file.read(MOST_FILE + 1)
        if len(body) > MOST_FILE:
            raise Refused("too_large", f"'{name}' has more than {MOST_FILE >> 20} MiB.")
        try:
            text = body.decode()
        except UnicodeDecodeError:
            raise Refused("unsupported_type", f"'{name}' is no text in UTF-8.") from None
        if not text.strip():
            raise Refused("no_text", f"'{name}' holds no text.")
        return text

    def opened(self, content: dict[str, str]) -> Any:
        """Open the bytes: at a URL, or in the folder that is drivefeed's object store."""
        if "url" in content:
            return urllib.request.urlopen(content["url"], timeout=60)
        path = (self.store / content["store_key"]).resolve() if self.store else None
        if self.store is None or path is None or not path.is_relative_to(self.store.resolve()):
            raise Refused("backend_refused", "This backend was started without --store.")
        return path.open("rb")

    def done(self, row: sqlite3.Row, chunks: list[str], *, pages: int) -> None:
        """End a job, unless it was cancelled; show it unless a higher seq is here already."""
        job_id = row["job_id"]
        with self.lock:
            self.db.execute("BEGIN")
            ended = self.db.execute(
                "UPDATE jobs SET state = 'done', progress = 100, pages = ?, chunks = ?, live ="
                " NOT EXISTS (SELECT 1 FROM jobs o WHERE o.document_id = ? AND o.seq > ?)"
                " WHERE job_id = ? AND state = 'working'",
                (pages, len(chunks), row["document_id"], row["seq"], job_id),
            ).rowcount
            if ended:
                numbered = [(job_id, number, text) for number, text in enumerate(chunks)]
                self.db.executemany("INSERT INTO chunks VALUES (?, ?, ?)", numbered)
            self.db.execute("COMMIT")

    def refuse(self, job_id: str, reason: str, detail: str) -> None:
        self.rows(
            "UPDATE jobs SET state = 'refused', reason = ?, detail = ?"
            " WHERE job_id = ? AND state = 'working'",
            *(reason, detail, job_id),
        )

    # --- addresses ---------------------------------------------------------------------------

    def answer(self, method: str, target: str, body: bytes) -> tuple[int, dict[str, Any] | None]:
        """Route a request that was let in."""
        parts = urlsplit(target)
        match method, [unquote(one) for one in parts.path.split("/")[1:]]:
            case "GET", ["v1", "health"]:
                return 200, {"version": "v1", "name": "sample backend"}
            case "POST", ["v1", "jobs"]:
                return 200, self.submit(json_of(body))
            case "GET", ["v1", "jobs"]:
                return 200, self.find(parse_qs(parts.query).get("key", [""])[0])
            case "GET", ["v1", "jobs", job_id]:
                return 200, self.status(job_id)
            case "POST", ["v1", "jobs", job_id, "cancel"]:
                return 200, self.cancel(job_id)
            case "PUT", ["v1", "documents", document_id, "place"]:
                place = json_of(body)
                need(isinstance(place.get("name"), str), "name")
                self.set_place(document_id, place["name"], place.get("folders", []))
                return 204, None
        named = re.fullmatch(ROUND + r"(/live)?", parts.path)
        if named is None:
            raise Problem(404, "", "Nothing of the contract is at this address.")
        document_id, import_id, round_ = unquote(named[1]), unquote(named[2]), int(named[3])
        if method == "DELETE" and not named[4]:
            self.remove(document_id, import_id, round_)
            return 204, None
        if method == "PUT" and named[4]:
            live = json_of(body).get("live")
            need(isinstance(live, bool), "live")
            self.set_live(document_id, import_id, round_, bool(live))
            return 204, None
        raise Problem(405, "", "Nothing of the contract is done this way.")


def same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def chunks_of(text: str) -> list[str]:
    return [text[start : start + 1000] for start in range(0, len(text), 1000)]


def json_of(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    need(isinstance(found, dict), "the body")
    return found


def need(good: bool, name: str) -> None:
    if not good:
        raise Problem(400, "malformed", f"{name} is missing or not as the contract has it.")


def check(sent: dict[str, Any]) -> None:
    for name, pattern in (("key", KEY), ("document_id", ID), ("import_id", ID), ("org_id", ID)):
        value = sent.get(name)
        need(isinstance(value, str) and pattern.fullmatch(value) is not None, name)
    for name, least, most in (("round", 1, 2**31), ("seq", 0, 2**53), ("size", 0, 2**62)):
        value = sent.get(name)
        need(type(value) is int and least <= value < most, name)
    need(isinstance(sent.get("name"), str) and 1 <= len(sent["name"]) <= 1024, "name")
    content = sent.get("content")
    need(isinstance(content, dict) and any(content.get(k) for k in ("url", "store_key")), "content")


class Handler(BaseHTTPRequestHandler):
    """HTTP for one backend."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    backend: ClassVar[Backend]

    def reply(self) -> None:
        length = self.headers.get("Content-Length") or "0"
        if not length.isdigit() or int(length) > MOST_BYTES:
            self.close_connection = True
            self.send(413, Problem(413, "too_large", "The request is too large.").body)
            return
        body = self.rfile.read(int(length))
        try:
            target = self.path[self.path.find("/v1/") :]
            refusal = self.backend.refusal(self.headers, self.command, target, body)
            if refusal:
                raise Problem(401, "unauthorized", refusal)
            self.send(*self.backend.answer(self.command, target, body))
        except Problem as problem:
            self.send(problem.status, problem.body)
        except Exception:
            traceback.print_exc()
            self.send(500, {"detail": "The backend failed."})

    do_GET = do_POST = do_PUT = do_DELETE = reply  # noqa: N815 - the names of http.server

    def send(self, status: int, body: dict[str, Any] | None) -> None:
        content = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        head = [f"HTTP/1.1 {status} -", f"Content-Length: {len(content)}"]
        if content:
            kind = "application/json" if status < 400 else "application/problem+json"
            head.append(f"Content-Type: {kind}")
        if status in {429, 503}:
            head.append("Retry-After: 5")
        if self.close_connection:
            head.append("Connection: close")
        self.wfile.write("\r\n".join([*head, "", ""]).encode() + content)

    def log_message(self, *args: Any) -> None:
        """Say nothing: addresses may hold what should not be in a log."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller who went away before the answer is no error: it will ask for the key."""


def serve(backend: Backend, *, host: str = "127.0.0.1", port: int = 0) -> Server:
    """Return a server that listens; call ``serve_forever`` on it."""
    return Server((host, port), type("Bound", (Handler,), {"backend": backend}))


def main() -> None:
    parser = argparse.ArgumentParser(description="A small ingestion backend for drivefeed.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8771)
    parser.add_argument("--secret-file", type=Path, required=True)
    parser.add_argument("--auth", choices=("hmac", "bearer"), default="hmac")
    parser.add_argument("--database", default="backend.sqlite")
    parser.add_argument("--store", type=Path, help="drivefeed's objects folder, to read keys from")
    asked = parser.parse_args()
    secret = asked.secret_file.read_text(encoding="utf-8").strip()
    backend = Backend(asked.database, secret, asked.auth, asked.store)
    server = serve(backend, host=asked.host, port=asked.port)
    print(f"Serving on http://{asked.host}:{server.server_address[1]} until Ctrl-C.", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
