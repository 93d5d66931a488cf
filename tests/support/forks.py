"""Commands of drivefeed and graphsim in processes of their own, without a new interpreter for each.

A process of ``multiprocessing``'s fork server loads everything once (:mod:`support.loaded`); each
command is a fork of it, with its own session, folder, environment and streams. Starting an
interpreter and loading the same modules takes longer than most of what a test then looks at.
Tests that are about exactly that (a first run, a terminal, the wheel) start interpreters.
"""

from __future__ import annotations

import faulthandler
import importlib
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from multiprocessing import forkserver, reduction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from unittest.mock import patch

from support.forked_children import GRAPHSIM, INDEX, end_with_parent, fork_children, to_its_end
from support.processes import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from multiprocessing.connection import Connection
    from types import TracebackType
    from typing import Self

DRIVEFEED = "drivefeed.cli"
START_SECONDS = 60.0
_LOADED = "support.forks_loaded"
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([_LOADED])


def _run_server() -> None:
    # In Python 3.11 it does not look for modules where we do, and says nothing of those that it
    # did not find.
    with patch.dict(os.environ, environment(PYTHONPATH=os.pathsep.join(sys.path))):
        forkserver.ensure_running()


class _Descriptor:
    """A file descriptor that goes along to a process which is being started."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        return _received, (reduction.DupFd(self.number),)


def _received(sent: Any) -> int:
    number: int = sent.detach()
    return number


@dataclass(frozen=True)
class _Birth:
    module: str
    words: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    new_session: bool
    before: Callable[[], None] | None


class Fork:
    """A command that runs; to be asked as :class:`subprocess.Popen` is.

    Args:
        module: the one whose ``main`` is the command.
        words: what is behind the command's name.
        stdin, stdout, stderr: as :class:`subprocess.Popen` has them.
        text: whether pipes carry text, in UTF-8.
        preexec_fn: a function of a module, called before the command begins.
    """

    def __init__(
        self,
        module: str,
        words: Sequence[str],
        *,
        cwd: Path | str | None = None,
        env: Mapping[str, str],
        stdin: int | IO[Any] = subprocess.DEVNULL,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        text: bool = False,
        start_new_session: bool = False,
        preexec_fn: Callable[[], None] | None = None,
    ) -> None:
        self.args = [module, *words]
        self._theirs: list[int] = []
        self.stdin = self._pipe_to(stdin, text=text)
        self.stdout = self._pipe_from(stdout, 1, text=text)
        self.stderr = self._pipe_from(stderr, 2, text=text)
        birth = _Birth(
            module, tuple(words), str(cwd or Path.cwd()), dict(env), start_new_session, preexec_fn
        )
        ours, theirs = _CONTEXT.Pipe()
        streams = [_Descriptor(number) for number in self._theirs]
        # Nobody waits for it when the tests end.
        self._process = _CONTEXT.Process(target=_live, args=(birth, streams, theirs), daemon=True)
        try:
            _run_server()
            self._process.start()
        finally:
            theirs.close()
            for number in self._theirs:
                os.close(number)
        with ours:
            if not ours.poll(START_SECONDS):
                raise TimeoutError(self.args)
            ours.recv()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    def _pipe_to(self, wanted: int | IO[Any], *, text: bool) -> IO[Any] | None:
        if wanted != subprocess.PIPE:
            self._theirs.append(_opened(wanted, os.O_RDONLY))
            return None
        theirs, ours = os.pipe()
        self._theirs.append(theirs)
        return os.fdopen(ours, "w" if text else "wb", encoding="utf-8" if text else None)

    def _pipe_from(
        self, wanted: int | IO[Any] | None, number: int, *, text: bool
    ) -> IO[Any] | None:
        if wanted == subprocess.STDOUT:
            self._theirs.append(os.dup(self._theirs[1]))
            return None
        if wanted != subprocess.PIPE:
            self._theirs.append(_opened(number if wanted is None else wanted, os.O_WRONLY))
            return None
        ours, theirs = os.pipe()
        self._theirs.append(theirs)
        return os.fdopen(ours, "r" if text else "rb", encoding="utf-8" if text else None)

    @property
    def returncode(self) -> int | None:
        """How it ended; None while it runs, and minus the number of the signal that ended it."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return how it ended, or None."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end.

        Raises:
            subprocess.TimeoutExpired: it still runs after ``timeout`` seconds.
        """
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal; nothing when it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for stream in (self.stdout, self.stderr, self.stdin):
            if stream is not None:
                stream.close()
        self.wait()


def run(
    module: str,
    words: Sequence[str],
    *,
    cwd: Path | str,
    env: Mapping[str, str],
    timeout: float,
    preexec_fn: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; return what it printed.

    Raises:
        subprocess.TimeoutExpired: it was killed after ``timeout`` seconds.
    """
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as complained:
        process = Fork(
            *(module, words),
            cwd=cwd,
            env=env,
            stdout=printed,
            stderr=complained,
            preexec_fn=preexec_fn,
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            process.kill()
            process.wait()
            error.output, error.stderr = _all_of(printed), _all_of(complained)
            raise
        return subprocess.CompletedProcess(words, code, _all_of(printed), _all_of(complained))


def _all_of(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8")


def _opened(wanted: int | IO[Any], how: int) -> int:
    if wanted == subprocess.DEVNULL:
        return os.open(os.devnull, how)
    return os.dup(wanted if isinstance(wanted, int) else wanted.fileno())


def _live(birth: _Birth, streams: Sequence[int], told: Connection) -> None:
    """Run the command as if this process had just been started for it."""
    assert _LOADED in sys.modules, "the fork server could not load what its forks need"
    os.chdir(birth.folder)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    end_with_parent()
    if birth.new_session:
        os.setsid()
    os.environ.clear()
    os.environ.update(birth.environment)
    _open_streams()
    if birth.before is not None:
        birth.before()
    told.send("begun")
    # What the server gave along, too: a process that starts has three streams.
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    sys.argv = [birth.module, *birth.words]
    fork_children(INDEX, GRAPHSIM)
    os._exit(to_its_end(importlib.import_module(birth.module).main))


def _open_streams() -> None:
    bare = bool(os.environ.get("PYTHONUNBUFFERED"))
    sys.stdin = sys.__stdin__ = os.fdopen(0, encoding="utf-8", closefd=False)
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = os.fdopen(
            number,
            "w",
            encoding="utf-8",
            errors="strict" if number == 1 else "backslashreplace",
            buffering=1 if number == 2 or os.isatty(number) else -1,
            closefd=False,
        )
        stream.reconfigure(write_through=bare)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if os.environ.get("PYTHONFAULTHANDLER"):
        faulthandler.enable(file=2)
