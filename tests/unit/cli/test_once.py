"""An option that is typed twice is refused by every command, without repeating a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import typer
from typer.core import TyperGroup, TyperOption

from drivefeed.cli.app import app
from drivefeed.cli.once import Commands
from support.commands import run_command, said_in_frame

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "Zq8Q~vX2canary.Rt-71"


def commands_below(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, command
    if isinstance(command, TyperGroup):
        for word, one in command.commands.items():
            yield from commands_below(one, f"{name} {word}")


def test_every_command_refuses_every_option_that_is_there_twice() -> None:
    seen, repeatable = 0, []
    for name, command in commands_below(typer.main.get_command(app), "drivefeed"):
        for option in command.params:
            if not isinstance(option, TyperOption) or not option.expose_value:
                continue
            if option.multiple:
                repeatable.append(f"{name} {option.opts[0]}")
                continue
            words = [option.opts[0], *([] if option.is_flag else [SECRET])] * 2
            with pytest.raises(typer.BadParameter) as refused:
                command.make_context(name, words)
            assert f"{option.opts[0]}" in refused.value.message
            assert "is there 2 times" in refused.value.message
            assert SECRET not in refused.value.message
            seen += 1
    assert seen > 150
    assert "drivefeed backend check --only" in repeatable


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (f"account add office --tenant a --tenant {SECRET}", "--tenant is there 2 times."),
        (f"--data a --data {SECRET} status", "--data is there 2 times."),
        (f"usage --org {SECRET} --org={SECRET} --org b", "--org is there 3 times."),
    ],
)
def test_whoever_types_it_is_told_which_option(tmp_path: Path, typed: str, said: str) -> None:
    done = run_command(*typed.split(), cwd=tmp_path, ok=[2])
    words = said_in_frame(done.stderr)
    assert said in words
    assert SECRET[:8] not in done.stdout + words.replace(" ", "")


def test_what_may_be_repeated_may_be(tmp_path: Path) -> None:
    typed = "backend check http://127.0.0.1:9 --only one --only another"
    done = run_command(*typed.split(), cwd=tmp_path, ok=[2])
    assert "times" not in done.stderr


NAMES = {"first": ("one", "two"), "second": ("one",)}


def some_commands() -> Commands:
    """Return two commands and two families, as the entry makes them."""
    made = Commands(name="some")
    made.callback()(lambda: None)
    for name in ("up", "status"):
        made.command(name)(lambda: None)
    for family, names in NAMES.items():
        inner = Commands(name=family)
        for name in names:
            inner.command(name)(lambda: None)
        made.add_typer(inner)
    return made


@pytest.mark.parametrize(
    ("typed", "left"),
    [
        ("up --bogus", ["up"]),
        ("up status", ["up"]),
        ("first one", ["first one"]),
        ("first --help", ["first one", "first two"]),
        ("first nothing", ["first one", "first two"]),
        ("--data up status", ["status"]),
        ("--data=up status", ["status"]),
        ("--data x --data y first two", ["first two"]),
        ("--data", ["first one", "first two", "second one", "status", "up"]),
        ("--dta up status", ["first one", "first two", "second one", "status", "up"]),
        ("", ["first one", "first two", "second one", "status", "up"]),
        ("staus", ["first one", "first two", "second one", "status", "up"]),
    ],
)
def test_only_the_command_that_is_typed_is_made_ready(typed: str, left: list[str]) -> None:
    made = some_commands()
    narrowed = made.narrowed(typed.split(), valued=frozenset({"--data"}))
    found = commands_below(typer.main.get_command(narrowed), "")
    assert (
        sorted(name.strip() for name, command in found if not isinstance(command, TyperGroup))
        == left
    )
