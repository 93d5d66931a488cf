# ruff: noqa: INP001 - run by its path, never imported
"""Run every check of 'make check', all of them even when one fails, and sum up at the end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
PYTHON = sys.executable

CHECKS = (
    ("lock files", [PYTHON, "scripts/lock.py", "--check"]),
    ("ruff check", [f"{BIN}/ruff", "check"]),
    ("ruff format", [f"{BIN}/ruff", "format", "--check"]),
    ("import arrows", [f"{BIN}/lint-imports", "--no-logo", "--show-timings"]),
    ("generated docs", [PYTHON, "scripts/generate_docs.py", "--check"]),
    ("mypy", [f"{BIN}/mypy"]),
)


def main() -> int:
    """Run the checks, and return 1 if any of them failed."""
    failed = []
    for name, command in CHECKS:
        sys.stdout.write(f"==> {name}\n")
        sys.stdout.flush()
        began = time.monotonic()
        code = subprocess.run(command, check=False, cwd=ROOT).returncode  # noqa: S603 - the table
        sys.stdout.write(f"    {name}: {'FAILED' if code else 'ok'}")
        sys.stdout.write(f" ({time.monotonic() - began:.1f} s)\n")
        if code:
            failed.append(name)
    if failed:
        sys.stdout.write(f"\nFailed: {', '.join(failed)}.\n")
        return 1
    sys.stdout.write("\nAll checks passed.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
