"""The commands of the page on connecting, typed from top to bottom as they stand there."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.core import TyperGroup

from drivefeed.cli.app import app
from graphsim.tenancy import KeyCredential
from integration.delegated.desk import Desk, serving
from support.processes import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from graphsim.serving import GraphSim

PAGE = REPOSITORY / "docs" / "connecting.md"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONTINUED = re.compile(r"\\\n\s*")
_SHELLS = frozenset({"&", "&&", "|", ">", "<", ";"})
"""Where a command ends, and the shell begins."""

NOT_RUN = {
    "up": "a daemon; tests/acceptance runs it",
    "search": "asks that daemon",
    "probe [ACCOUNT]": "the form of the command, not one",
    "init --embedding": "a choice for a new installation; test_init_embedding types them",
    "account add mine": "a person types a code; integration/delegated does",
    "browse mine": "reads through that person's account",
}
"""By what they begin with; that their options exist is tested all the same."""


def fences(page: Path, *kinds: str) -> list[str]:
    return [text for kind, text in _FENCE.findall(page.read_text("utf-8")) if kind in kinds]


def commands(page: Path) -> list[list[str]]:
    """The commands of a page as words, without ``drivefeed`` and comments, in their order."""
    lines = [
        line
        for text in fences(page, "sh", "")
        for line in _CONTINUED.sub(" ", text).splitlines()
        if line.startswith("drivefeed ")
    ]
    found = []
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        ends = [number for number, word in enumerate(words) if word in _SHELLS]
        found.append(words[: min(ends, default=None)])
    return found


def is_run(words: list[str]) -> bool:
    return not " ".join(words).startswith(tuple(NOT_RUN))


@pytest.mark.parametrize("name", ["docs/connecting.md", "docs/operations.md", "README.md"])
def test_commands_of_a_page_are_understood(name: str) -> None:
    found = [words for words in commands(REPOSITORY / name) if not {*"[…"} & {*"".join(words)}]
    assert len(found) > 5
    group: Any = typer.main.get_command(app)
    for words in found:
        context = group.make_context("drivefeed", list(words))
        while isinstance(context.command, TyperGroup) and context._protected_args:
            typed = [*context._protected_args, *context.args]
            name, command, rest = context.command.resolve_command(context, typed)
            assert command is not None, words
            context = command.make_context(name, rest, parent=context)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with serving() as sim:
        lab = sim.add_site("Lab")
        trials = lab.drives[0].create_folder("Trials")
        lab.drives[0].create_folder("2026", trials.id)
        lab.drives[0].create_file("dose.txt", b"The dose escalation of the first trial.", trials.id)
        sim.add_site("Legal").drives[0].create_folder("Contracts")
        research = sim.add_site("Research").drives[0]
        research.create_folder("Handbook")
        sim.add_person("ana@graphsim.invalid", "Ana").drives[0].create_folder("Plans")
        yield Desk(tmp_path, sim)


def as_here(text: str, sim: GraphSim) -> str:
    """Put what there is at graphsim in place of the page's placeholders."""
    (handbook,) = sim.estate.site("graphsim.sharepoint.invalid:/sites/Research").drives
    for placeholder, value in {
        "contoso.sharepoint.com": "graphsim.sharepoint.invalid",
        "….sharepoint.com": "graphsim.sharepoint.invalid",
        "contoso.com": "graphsim.invalid",
        "b!…": handbook.id,
        "TENANT": sim.endpoints.tenant_id,
        "APP": sim.endpoints.client_id,
    }.items():
        text = text.replace(placeholder, value)
    return text


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_what_the_page_says_works_from_top_to_bottom(desk: Desk) -> None:
    """One account more is there than the page makes: 'work', of which its later parts tell."""
    sim, home = desk.sim, desk.home
    (declared,) = fences(PAGE, "toml")
    (home / "connections.toml").write_text(as_here(declared, sim))
    # Some stand there twice: in short, and where they are explained.
    wanted = dict.fromkeys(tuple(words) for words in commands(PAGE) if is_run(words))
    assert len(wanted) > 25
    for words in wanted:
        typed = [as_here(one, sim) for one in words]
        if words[:2] == ("account", "add"):
            typed += desk.place[4:]
        desk(*typed)
        if words[:2] == ("account", "certificate"):
            # It is uploaded, and somebody keeps its public part for the administrator.
            public = (home / "office.pem").read_bytes()
            (home / "public.pem").write_bytes(public)
            sim.directory.app.certificates.append(KeyCredential(public))
            add = ("account", "add", "work", *desk.place, "--secret-stdin")
            desk(*add, typed=sim.endpoints.client_secret)
    assert {one["name"] for one in desk.rows("SELECT name FROM connections")} == {
        *("Clinical trials", "Legal", "Trials", "Handbook"),
    }
