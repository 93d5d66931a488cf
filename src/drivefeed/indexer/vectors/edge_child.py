"""The child process that owns an index folder: reads requests from a pipe, answers on another.

A frame is a length (four bytes, big endian) and a MessagePack value. A request is
``[number, method, arguments]``, an answer ``[number, value, error]`` with ``error`` None or
``[name, sentence]``. The first answer has number 0 and says whether the folder could be opened.

Answers to writes go out only when the writes are on the disk; those that wait at the same time
share one flush. The child ends when its input ends, and on Linux the kernel kills it with its
parent even where it hangs, so it cannot outlive it. With SIGKILL of either nothing that was
answered is lost.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from drivefeed.domain.errors import DrivefeedError, NeedsAttention, PartDown
from drivefeed.indexer.vectors.identity import Identity
from drivefeed.indexer.vectors.shard import Shard

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTH: Final = 4
"""Bytes of a frame's length."""

_PR_SET_PDEATHSIG: Final = 1  # <linux/prctl.h>
_WRITES: Final = frozenset({"upsert", "update", "remove", "remove_ids"})
_UNANSWERED: Final = 64
_PIECE: Final = 1 << 20
_IDLE_SECONDS: Final = 2.0
_CHURN: Final = 2_000
"""Changed points from which a vacuum may pay off."""


def frame(value: Any) -> bytes:
    """Return a value as a frame."""
    body = msgspec.msgpack.encode(value)
    return len(body).to_bytes(LENGTH, "big") + body


class Pipe:
    """Frames over two file descriptors, blocking."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._buffer = bytearray()

    def ready(self, seconds: float | None) -> bool:
        """Tell whether there is something to read within that time; None waits for ever."""
        return bool(self._buffer) or bool(select.select([self._source], [], [], seconds)[0])

    def read(self) -> Any:
        """Return the next value, or None at the end of the input."""
        header = self._exactly(LENGTH)
        body = header and self._exactly(int.from_bytes(header, "big"))
        return msgspec.msgpack.decode(body) if body else None

    def write(self, value: Any) -> None:
        """Write a value."""
        rest = memoryview(frame(value))
        while rest:
            rest = rest[os.write(self._target, rest) :]

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            piece = os.read(self._source, _PIECE)
            if not piece:
                return b""
            self._buffer += piece
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


class Service:
    """Answers requests one after the other, and flushes as seldom as it may."""

    def __init__(self, pipe: Pipe, shard: Shard) -> None:
        self._pipe, self._shard = pipe, shard
        self._answers: list[list[Any]] = []
        self._written = False
        self._churn = 0
        self._methods: dict[str, Callable[..., Any]] = {
            "upsert": shard.upsert,
            "search": shard.search,
            "update": shard.update,
            "remove": shard.remove,
            "count": shard.count,
            "scroll": shard.scroll,
            "ids": shard.ids,
            "remove_ids": shard.remove_ids,
        }

    def run(self) -> None:
        """Serve until the input ends."""
        while True:
            if self._answers and (len(self._answers) >= _UNANSWERED or not self._pipe.ready(0)):
                self._settle()
            if self._churn >= _CHURN and not self._pipe.ready(_IDLE_SECONDS):
                self._shard.vacuum()
                self._churn = 0
            request = self._pipe.read()
            if request is None:
                break
            number, method, arguments = request
            self._answers.append([number, *self._answer(method, arguments)])
        self._settle()

    def _answer(self, method: str, arguments: list[Any]) -> tuple[Any, list[str] | None]:
        try:
            value = self._methods[method](*arguments)
        except DrivefeedError as error:
            return None, [type(error).__name__, str(error)]
        except Exception as error:  # noqa: BLE001 - the library raises bare Exceptions
            return None, ["Transient", f"The vector index could not do {method}: {error}"]
        if method in _WRITES:
            self._written = True
            self._churn += len(arguments[0]) if method == "upsert" else int(value)
        return value, None

    def _settle(self) -> None:
        if self._written:
            # If this raises, the process ends and everything unanswered counts as not written.
            self._shard.flush()
            self._written = False
        for answer in self._answers:
            self._pipe.write(answer)
        self._answers.clear()


def _tie_to_parent(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked to follow
            sys.exit(1)


def main(folder: str, model: str, dimension: str, provider: str, parent: str) -> int:
    """Open the folder, say so, and serve; return the exit code.

    Args:
        folder: the folder of the index.
        model: the name of the embedding model.
        dimension: how many numbers a dense vector has.
        provider: who runs the model.
        parent: the process id of who started us.
    """
    _tie_to_parent(int(parent))
    # Ctrl-C reaches the whole process group; the parent decides when we end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pipe = Pipe(os.dup(0), os.dup(1))
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)  # nothing the library prints may get between the frames
    try:
        made_for = Identity(model=model, dimension=int(dimension), provider=provider)
        shard = Shard(Path(folder), made_for)
    except (NeedsAttention, PartDown) as error:
        pipe.write([0, None, [type(error).__name__, str(error)]])
        return 1
    pipe.write([0, None, None])
    try:
        Service(pipe, shard).run()
    except BrokenPipeError:
        return 0
    finally:
        shard.close()
    return 0
