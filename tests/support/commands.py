"""Commands of drivefeed run inside of this process, as ``main`` runs them.

Starting an interpreter takes longer than most commands; what a process of its own shows is tested
in ``tests/integration/cli``.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING
from unittest.mock import patch

from drivefeed.cli import main
from drivefeed.cli.output import console
from support.logs import logging_as_before
from support.processes import environment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def run_command(
    *words: str, cwd: Path, ok: Sequence[int] = (0,)
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; an exception that ``main`` lets through comes through here too."""
    printed, complained = _stream(), _stream()
    code = 0
    console.cache_clear()
    with (
        logging_as_before(),
        chdir(cwd),
        patch.dict(os.environ, environment(), clear=True),
        patch.object(sys, "argv", ["drivefeed", *words]),
        redirect_stdout(printed),
        redirect_stderr(complained),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
    console.cache_clear()
    done = subprocess.CompletedProcess(words, code, _text(printed), _text(complained))
    assert code in ok, (words, code, done.stdout[-4000:], done.stderr[-4000:])
    return done


def said_in_frame(framed: str) -> str:
    """Return what an error about the command line says, without its frame and line ends."""
    return " ".join(framed.replace("│", " ").split())


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()
