"""A server on loopback that says a little, again and again, and never comes to an end."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_BETWEEN_SECONDS = 0.05


@dataclass
class Dripping:
    """Where it listens, and what became of it.

    Attributes:
        was_left: set when a client closed its connection.
    """

    port: int
    was_left: threading.Event = field(default_factory=threading.Event)


@contextmanager
def dripping(first: bytes, drop: bytes) -> Iterator[Dripping]:
    """Serve one client at a time in a thread: ``first``, then ``drop`` until it leaves."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(_BETWEEN_SECONDS)
        found = Dripping(listener.getsockname()[1])

        def serve() -> None:
            while not over.is_set():
                try:
                    client, _ = listener.accept()
                except TimeoutError:
                    continue
                with client:
                    try:
                        client.sendall(first)
                        while not over.wait(_BETWEEN_SECONDS):
                            client.sendall(drop)
                    except OSError:
                        found.was_left.set()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield found
        finally:
            over.set()
            thread.join()
