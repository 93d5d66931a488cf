"""Connections to the status page: those that send nothing, or take nothing, do not hold a place.

uvicorn waits for the head of a request as long as the other side likes, and counts who says nothing
among those that are served. So somebody who opens connections and leaves them would lock out all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

HEAD_SECONDS: Final = 10.0
"""In this time the head of a request has to arrive."""
STALL_SECONDS: Final = 30.0
"""So long an answer may wait for a reader who takes nothing of it."""
MOST_CONNECTIONS: Final = 250
"""With more, the one that is idle longest is closed; less than the requests that are served."""


class PatientProtocol(H11Protocol):
    """One connection, with an end to waiting.

    Attributes:
        since: when it began, by the clock of the event loop.
    """

    _waits_for_head: asyncio.TimerHandle | None = None
    _waits_for_reader: asyncio.TimerHandle | None = None
    since: float = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        """Take a connection; where there are too many, one that is idle makes room."""
        super().connection_made(transport)
        self.since = self.loop.time()
        self._waits_for_head = self._later(HEAD_SECONDS)
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        _cancel(self._waits_for_head)
        _cancel(self._waits_for_reader)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; the head of a request has to be whole in time."""
        try:
            super().data_received(data)
        except h11.ProtocolError:
            self.transport.abort()
        if not self.is_idle:
            _cancel(self._waits_for_head)
            self._waits_for_head = None
        elif self._waits_for_head is None:
            self._waits_for_head = self._later(HEAD_SECONDS)

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request; in the middle of an answer there is only closing."""
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:
            self.transport.close()

    def pause_writing(self) -> None:
        """Wait for the reader, but not for ever."""
        super().pause_writing()
        self._waits_for_reader = self._later(STALL_SECONDS)

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        _cancel(self._waits_for_reader)

    def _later(self, seconds: float) -> asyncio.TimerHandle:
        end: Callable[[], None] = self.transport.abort
        return self.loop.call_later(seconds, end)

    def _make_room(self) -> None:
        if len(self.connections) <= MOST_CONNECTIONS:
            return
        others = [
            one
            for one in self.connections
            if isinstance(one, PatientProtocol) and one.is_idle and one is not self
        ]
        if others:
            oldest = min(others, key=lambda one: one.since)
            self.connections.discard(oldest)
            oldest.transport.abort()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
