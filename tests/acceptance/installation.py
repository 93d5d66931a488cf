"""A whole installation made by commands, to be broken in one place and cured again."""

from __future__ import annotations

import io
import json
import shutil
import sqlite3
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from support.commands import run_command
from support.evidence import rows_in

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from graphsim.serving import GraphSim

Findings = list[dict[str, str]]


class Installation:
    """A data folder with an account, a drive and a connection, over a Valkey of the test."""

    def __init__(self, home: Path, redis_url: str) -> None:
        self.home = home
        self.redis_url = redis_url

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def config(self) -> Path:
        return self.data / "drivefeed.toml"

    @property
    def catalog(self) -> Path:
        return self.data / "catalog.sqlite"

    def __call__(
        self, *words: str, typed: str = "", ok: Sequence[int] = (0,)
    ) -> subprocess.CompletedProcess[str]:
        with patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()))):
            return run_command("--data", str(self.data), *words, cwd=self.home, ok=ok)

    def json(self, *words: str, typed: str = "", ok: Sequence[int] = (0,)) -> Any:
        return json.loads(self(*words, "--json", typed=typed, ok=ok).stdout)

    def doctor(self) -> Findings:
        found: Findings = self.json("doctor", ok=(0, 1))
        return found

    def settings(self, *lines: str) -> None:
        """Write the settings file: the Redis URL, and what a test adds."""
        text = "\n".join([f"redis_url = {json.dumps(self.redis_url)}", *lines, ""])
        self.config.write_text(text, encoding="utf-8")
        self.config.chmod(0o600)

    def sql(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.catalog)) as catalog, catalog:
            catalog.execute(statement, values)

    def rows(self, query: str) -> list[dict[str, Any]]:
        return rows_in(self.data, query)

    def copied_to(self, home: Path) -> Installation:
        shutil.copytree(self.home, home, dirs_exist_ok=True)
        return Installation(home, self.redis_url)


def ill(findings: Findings) -> dict[tuple[str, str], str]:
    """Return the remedies of what is yellow or red: (colour, part) → remedy."""
    return {
        (one["colour"], one["part"]): one["remedy"]
        for one in findings
        if one["colour"] in {"yellow", "red"}
    }


WITHOUT_DAEMON = {("yellow", "daemon")}


@contextmanager
def installed(home: Path, sim: GraphSim, redis_url: str) -> Iterator[Installation]:
    """Make one as an admin would."""
    home.mkdir(exist_ok=True)
    made = Installation(home, redis_url)
    made("init")
    made.settings()
    drive = sim.memory
    folder = drive.create_folder("Harbour")
    drive.create_file("Cranes.txt", b"The crane driver wears a harness.", folder.id)
    ends = sim.endpoints
    made(
        *("account", "add", "app", "--secret-stdin", "--tenant", ends.tenant_id),
        *("--client-id", ends.client_id, "--authority", ends.login_url),
        *("--graph-url", ends.graph_url, "--ca-file", ends.ca_file),
        typed=ends.client_secret,
    )
    listed = made.json("browse", "app", "--user", ends.user_name)
    (harbour,) = [one for one in listed["entries"] if one["name"] == "Harbour"]
    made("connect", harbour["url"], "--apply")
    yield made
