"""What must not be in any file of the project."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from house.project import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_FILE = 1_000_000

# Written in pieces, so that this file passes its own test.
PLACES = ("ro" + "ot", "wo" + "rk", "ho" + r"me/\w+", "Us" + r"ers/\w+")
TALK = ("cla" + "ude", "chat" + "gpt", "sub" + "agents?", "git work" + "trees?")
FORBIDDEN = {
    # Paths inside of a URL follow a name or a closing brace.
    "a path of somebody's machine": re.compile(rf"(?<![\w.}}])/(?:{'|'.join(PLACES)})/[\w.]"),
    "the host of a package registry": re.compile(
        "|".join(
            (
                r"registry\." + "npmjs",
                "registry" + r"\.yarnpkg",
                "files" + r"\.pythonhosted",
                "py" + r"pi\.org",
                "arti" + "factory",
            )
        ),
        re.IGNORECASE,
    ),
    "talk of how the project is made": re.compile(
        rf"\b(?:{'|'.join(TALK)})\b|generated (?:by|with) an? (?:AI|LLM)", re.IGNORECASE
    ),
    "a secret": re.compile("BEGIN (?:RSA |EC )?PRIV" + "ATE KEY|AK" + r"IA[0-9A-Z]{16}"),
    "a merge that was not finished": re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE),
}
ALLOWED = {
    # Places inside of the image.
    ("Dockerfile", "a path of somebody's machine"),
}


def texts(tracked: list[Path]) -> list[tuple[str, str]]:
    found = []
    for path in tracked:
        try:
            found.append((path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    assert len(found) > 100
    return found


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_holds(what: str, tracked: list[Path]) -> None:
    found = [
        f"{name}: {match.group()}"
        for name, text in texts(tracked)
        if (name, what) not in ALLOWED
        for match in FORBIDDEN[what].finditer(text)
    ]
    assert not found


def test_no_file_is_large(tracked: list[Path]) -> None:
    large = {p.name: p.stat().st_size for p in tracked if p.stat().st_size > LARGEST_FILE}
    assert not large


def test_text_files_end_with_one_line_break_and_no_spaces_hang_over(tracked: list[Path]) -> None:
    kinds = {".py", ".md", ".toml", ".yml", ".yaml", ".mjs", ".sh", ".conf"}
    found = []
    for name, text in texts(tracked):
        if not text or not any(name.endswith(kind) for kind in kinds):
            continue
        if not text.endswith("\n") or text.endswith("\n\n"):
            found.append(f"{name}: the end")
        found += [
            f"{name}:{number}"
            for number, line in enumerate(text.split("\n"), 1)
            if line != line.rstrip() and not name.endswith(".md")
        ]
    assert not found


def test_locks_name_checksums_and_no_addresses() -> None:
    for name in ("demo", "dev"):
        text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
        assert "://" not in text
        lines = [line for line in text.splitlines() if line and line[0] not in "# "]
        assert len(lines) > 80
        assert all(re.match(r"[a-z0-9._-]+==\S+", line) for line in lines)
        # Each package is followed by at least one checksum.
        assert not re.search(r"^\S.*[^\\]$", text.partition("\n")[2], re.MULTILINE)
    npm = json.loads((ROOT / "bull-board" / "package-lock.json").read_text(encoding="utf-8"))
    packages = [one for path, one in npm["packages"].items() if path]
    assert all("resolved" not in one and one.get("integrity") for one in packages)


def test_links_between_documents_lead_somewhere(tracked: list[Path]) -> None:
    broken = []
    for path in tracked:
        if path.suffix != ".md":
            continue
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            place = target.partition("#")[0]
            if place and "://" not in place and not (path.parent / place).exists():
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert not broken
