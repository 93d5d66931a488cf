"""A person who reads a device code from a command, and enters it."""

from __future__ import annotations

import ssl
import subprocess
from typing import TYPE_CHECKING

import httpx

from support import forks
from support.processes import environment

if TYPE_CHECKING:
    from pathlib import Path

_SECONDS = 60


def sign_in(*words: str, cwd: Path, ca_file: str) -> str:
    """Run a command with ``--device`` in a process of its own, and enter its code.

    Args:
        words: the command, up to ``--device``.
        cwd: where it runs.
        ca_file: what the browser trusts.

    Returns:
        What it printed after the code was entered.
    """
    process = forks.Fork(
        forks.DRIVEFEED,
        (*words, "--device"),
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("Open https://"), line + process.stdout.read()
        url, code = line.split()[1], line.split(" code ")[1].split()[0]
        context = ssl.create_default_context(cafile=ca_file)
        httpx.get(url, params={"user_code": code}, verify=context).raise_for_status()
        rest = process.stdout.read()
        assert process.wait(_SECONDS) == 0, rest
        return rest
    finally:
        process.kill()
        process.wait()
