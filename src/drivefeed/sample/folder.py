"""Puts the sample on disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from drivefeed.sample.catalogue import SAMPLE_DOCUMENTS

if TYPE_CHECKING:
    from pathlib import Path


def write_sample(folder: Path, *, replace: bool = False) -> list[Path]:
    """Write the sample documents below `folder`, which is made if it is missing.

    A document that is there already is left alone, edited or not, so that a second demo finds what
    the first one left. Each file appears complete, by a rename.

    Args:
        folder: where the documents go; other files in it are not touched.
        replace: bring documents that differ from the sample back to it. Documents with the same
            content keep their modification time either way.

    Returns:
        The paths of all sample documents, written now or before, in the order of the catalogue.

    Raises:
        OSError: if the folder can't be written; what was written so far stays.
    """
    paths = []
    for document in SAMPLE_DOCUMENTS:
        path = folder.joinpath(*document.path.split("/"))
        paths.append(path)
        if path.exists() and not replace:
            continue
        content = document.render()
        if path.exists() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_bytes(content)
        os.replace(partial, path)  # noqa: PTH105 - the counterpart in pathlib hides that it replaces
    return paths
