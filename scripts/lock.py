# ruff: noqa: INP001 - run by its path, never imported
"""Write the lock files from pyproject.toml: python scripts/lock.py [--upgrade | --check].

The locks hold exact versions and checksums for all platforms we support, and no address to get
them from. Their first line holds a hash of what they were made from, so that ``--check`` can tell
without a network whether they are current.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "requirements"
BUILD = FOLDER / "build.in"
LOCKS = {
    # dev first: demo takes its versions from it, so that both agree.
    "dev": ("local", "multilingual", "sim", "otel", "ocr", "dev"),
    "demo": ("local", "sim"),
}
MARK = "# made by 'make lock' from inputs "


def inputs(name: str) -> str:
    """Return a hash of everything in the project that decides what is in the lock ``name``."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = configuration["project"]
    extras = {extra: sorted(project["optional-dependencies"][extra]) for extra in LOCKS[name]}
    stated = [
        project["requires-python"],
        sorted(project["dependencies"]),
        extras,
        configuration["tool"]["uv"]["environments"],
        BUILD.read_text(encoding="utf-8"),
    ]
    return hashlib.sha256(json.dumps(stated).encode()).hexdigest()[:32]


def stale() -> list[str]:
    """Return the names of the locks that were made from something else than what is there now."""
    found = []
    for name in LOCKS:
        path = FOLDER / f"{name}.lock"
        first = path.read_text(encoding="utf-8").partition("\n")[0] if path.exists() else ""
        if first != MARK + inputs(name):
            found.append(name)
    return found


def write(name: str, *, upgrade: bool) -> None:
    """Resolve the lock ``name``; versions stay as they were where they can, unless upgrading."""
    path = FOLDER / f"{name}.lock"
    command = [sys.executable, "-m", "uv", "pip", "compile", "pyproject.toml", str(BUILD)]
    command += ["--universal", "--python-version", "3.11", "--generate-hashes", "--quiet"]
    command += ["--no-emit-index-url", "--no-annotate", "--no-header", "--output-file", str(path)]
    for extra in LOCKS[name]:
        command += ["--extra", extra]
    if upgrade and name == "dev":
        command.append("--upgrade")
    if name == "demo":
        command += ["--constraint", str(FOLDER / "dev.lock")]
        path.unlink(missing_ok=True)  # its versions come from dev.lock alone
    subprocess.run(command, check=True, cwd=ROOT)  # noqa: S603 - a fixed command of this project
    text = path.read_text(encoding="utf-8")
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    path.write_text(f"{MARK}{inputs(name)}\n{text}", encoding="utf-8")


def main() -> int:
    """Write or check the locks, and return the exit code."""
    parser = argparse.ArgumentParser(description="Write the lock files from pyproject.toml.")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions allowed")
    parser.add_argument("--check", action="store_true", help="only tell whether they are current")
    chosen = parser.parse_args()
    if chosen.check:
        names = stale()
        if names:
            sys.stderr.write(
                f"requirements/{names[0]}.lock is older than pyproject.toml or "
                "requirements/build.in. Run 'make lock' and commit the result.\n"
            )
        return bool(names)
    for name in LOCKS:
        write(name, upgrade=chosen.upgrade)
    return 0


if __name__ == "__main__":
    sys.exit(main())
