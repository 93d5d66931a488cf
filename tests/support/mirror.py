"""A command that tells how it finds itself, and ends as it is asked to."""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import threading
from pathlib import Path


def main() -> None:
    """Print what a process can see of itself; then do what the first word says."""
    wish, *words = sys.argv[1:]
    seen = {
        "words": words,
        "folder": str(Path.cwd()),
        "environment": {key: one for key, one in os.environ.items() if key.startswith("DRIVEFEED")},
        "leads_session": os.getsid(0) == os.getpid(),
        "threads": threading.active_count(),
        "descriptors": sorted(int(one.name) for one in Path("/proc/self/fd").iterdir())[:4],
        "typed": sys.stdin.read(),
        "catches": signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL,
        "interrupts": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    }
    print(json.dumps(seen), flush=True)  # noqa: T201 - a test reads it
    atexit.register(sys.stderr.write, "the end\n")
    match wish:
        case "leave":
            sys.exit(int(words[0]))
        case "complain":
            sys.exit("a complaint")
        case "raise":
            raise ValueError(*words)
        case "stay":
            signal.pause()


if __name__ == "__main__":
    main()
