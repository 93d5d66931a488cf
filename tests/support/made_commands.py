"""The command line, made once: Typer makes all commands anew each time one is run."""

from __future__ import annotations

import functools
import importlib
from typing import Any


def keep_commands() -> None:
    """Make the commands now, and keep them; that takes a tenth of a second each time."""
    typer_main: Any = importlib.import_module("typer.main")
    if not hasattr(typer_main.get_command, "cache_info"):
        typer_main.get_command = functools.cache(typer_main.get_command)
    typer_main.get_command(importlib.import_module("drivefeed.cli.app").app)
