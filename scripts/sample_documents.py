# ruff: noqa: INP001 - run by its path, never imported
"""Write the sample documents: python scripts/sample_documents.py FOLDER [--replace]."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from drivefeed.sample import write_sample


def main() -> int:
    """Write the documents and print their paths."""
    arguments = argparse.ArgumentParser(description="Write the sample documents into a folder.")
    arguments.add_argument("folder", type=Path)
    arguments.add_argument(
        "--replace",
        action="store_true",
        help="bring documents that were edited back to how the sample has them",
    )
    chosen = arguments.parse_args()
    try:
        paths = write_sample(chosen.folder, replace=chosen.replace)
    except OSError as error:
        sys.stderr.write(f"Can't write the sample to {chosen.folder}: {error.strerror}.\n")
        return 1
    sys.stdout.write("".join(f"{path}\n" for path in paths))
    return 0


if __name__ == "__main__":
    sys.exit(main())
