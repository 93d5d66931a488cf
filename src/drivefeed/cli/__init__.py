"""The command line."""

from __future__ import annotations

from drivefeed.cli.app import main

__all__ = ["main"]
