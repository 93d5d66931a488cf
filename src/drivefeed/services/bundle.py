"""A ZIP for whoever is asked for help: what is in it is listed, and so is what was left out."""

from __future__ import annotations

import json
import os
import zipfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_CONTENTS = "contents.txt"


class Bundle:
    """Collects files and what was left out, and writes them into one ZIP."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, str]] = {}
        self.left_out: list[str] = []

    def add(self, name: str, content: str, meaning: str) -> None:
        """Add a text file.

        Args:
            meaning: what it holds, as words.
        """
        self._files[name] = (content.encode("utf-8", "replace"), meaning)

    def add_json(self, name: str, value: Any, meaning: str) -> None:
        """Add a value as JSON."""
        self.add(name, json.dumps(value, indent=2, default=str, ensure_ascii=False), meaning)

    def leave_out(self, words: str) -> None:
        """Say what is not inside, and why."""
        self.left_out.append(words)

    @property
    def contents(self) -> list[tuple[str, int, str]]:
        """The files inside: name, bytes, meaning."""
        return [(name, len(body), meaning) for name, (body, meaning) in self._files.items()]

    def listing(self) -> str:
        """Return what is inside and what is not, for people."""
        inside = [f"{name:<22} {size:>9} B  {meaning}" for name, size, meaning in self.contents]
        return "\n".join(["What is inside:", *inside, "", "What was left out:", *self.left_out, ""])

    def write(self, path: Path) -> None:
        """Write the ZIP, readable by its owner alone.

        Raises:
            FileExistsError: there is such a file already.
            OSError: it cannot be written.
        """
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with (
            os.fdopen(handle, "wb") as file,
            zipfile.ZipFile(file, "w", compression=zipfile.ZIP_DEFLATED) as archive,
        ):
            archive.writestr(_CONTENTS, self.listing())
            for name, (body, _) in self._files.items():
                archive.writestr(name, body)
