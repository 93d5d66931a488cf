"""Signals: which are taken, and what the first and the second one do."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING, cast

import pytest

from drivefeed.cli import interrupts as module
from drivefeed.cli import main
from drivefeed.cli.interrupts import Interrupts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


@pytest.fixture
def hangup_ignored() -> Iterator[None]:
    """Be started as ``nohup`` starts a program."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


async def test_a_hangup_that_was_ignored_stays_ignored(hangup_ignored: None) -> None:
    with Interrupts() as interrupts:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.05)
        assert interrupts.count == 0
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_the_first_signal_ends_what_is_under_way_and_the_second_all(
    number: signal.Signals, hangup_taken: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(module, "end_at_once", ended.append)

    async def starting() -> int:
        with Interrupts() as interrupts:
            os.kill(os.getpid(), number)
            with pytest.raises(asyncio.CancelledError):
                await asyncio.Event().wait()
            assert not ended
            os.kill(os.getpid(), number)
            while not ended:  # noqa: ASYNC110 - a signal sets no event of ours
                await asyncio.sleep(0.01)
            return interrupts.count

    assert await asyncio.create_task(starting()) == 2
    assert ended == [130]


def test_a_ctrl_c_while_the_commands_load_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Loading:
        @property
        def main(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "drivefeed.cli.app", cast("ModuleType", Loading()))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
