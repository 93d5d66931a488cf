"""What libraries make anew each time although it stays the same, made once."""

from __future__ import annotations

import functools
import importlib
from typing import Any


def keep_commands() -> None:
    """Make the command line now, and keep it; Typer takes a tenth of a second for it."""
    typer_main: Any = importlib.import_module("typer.main")
    _keep(typer_main, "get_command")
    typer_main.get_command(importlib.import_module("drivefeed.cli.app").app)


def keep_version_of_redis() -> None:
    """Read its version once; each new connection reads the package's description for it."""
    redis_utils: Any = importlib.import_module("redis.utils")
    _keep(redis_utils, "get_lib_version")
    redis_utils.get_lib_version()


def _keep(module: Any, name: str) -> None:
    made = getattr(module, name)
    if not hasattr(made, "cache_info"):
        setattr(module, name, functools.cache(made))
