"""The command line."""

from __future__ import annotations

import sys

EXIT_INTERRUPTED = 130
"""What a shell says of a program that SIGINT ended."""


def main() -> None:
    """Load the command line and run it; a Ctrl-C while it loads ends it without a traceback."""
    try:
        from drivefeed.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
