# ruff: noqa: INP001 - beside the script that imports it
"""The command line as a document: every command with its arguments and options."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from typer.main import get_command

from drivefeed.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """# Commands

Made from the code by `make format`; `drivefeed COMMAND --help` says the same on a terminal. Almost
every command takes `--json`: it prints one JSON document and nothing else. What a word in capitals
stands for is said where it is used.
"""
_HELP = {"help", "install_completion", "show_completion"}


def commands_document() -> str:
    """Return the document, in Markdown."""
    root: Any = get_command(app)
    lines = [HEAD, *_table("Before any command", root.params), "", root.epilog, ""]
    group = ""
    for words, command in sorted(_commands(root)):
        if words[0] != group and len(words) > 1:
            lines += [f"## {words[0]}", "", _text(root.commands[words[0]].help), ""]
        elif len(words) == 1:
            lines += [f"## {words[0]}", ""]
        group = words[0]
        if len(words) > 1:
            lines += [f"### {' '.join(words)}", ""]
        lines += ["```sh", _usage(words, command), "```", "", _text(command.help), ""]
        lines += _table("What it takes", command.params)
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    below = getattr(command, "commands", {})
    for name, one in below.items():
        if not one.hidden:
            yield from _commands(one, (*words, name))
    if not below:
        yield words, command


def _usage(words: tuple[str, ...], command: Any) -> str:
    parts = ["drivefeed", *words]
    for one in command.params:
        if not one.opts[0].startswith("-"):
            name = one.metavar or one.name.upper()
            many = "…" if one.nargs != 1 else ""
            parts.append(f"{name}{many}" if one.required else f"[{name}{many}]")
    if any(one.opts[0].startswith("-") and one.name not in _HELP for one in command.params):
        parts.append("[OPTIONS]")
    return " ".join(parts)


def _text(words: str | None) -> str:
    return inspect.cleandoc(words or "")


def _table(title: str, params: list[Any]) -> list[str]:
    shown = [one for one in params if not one.hidden and one.name not in _HELP]
    if not shown:
        return []
    rows = [(_names(one), _value(one), " ".join((one.help or "").split())) for one in shown]
    return [
        f"| {title} | Value | |",
        "| --- | --- | --- |",
        *(f"| {' | '.join(part.replace('|', chr(92) + '|') for part in row)} |" for row in rows),
    ]


def _names(param: Any) -> str:
    if not param.opts[0].startswith("-"):
        return f"`{param.metavar or param.name.upper()}`"
    return ", ".join(f"`{one}`" for one in (*param.opts, *param.secondary_opts))


def _value(param: Any) -> str:
    if getattr(param, "is_flag", False):
        return ""
    words = param.type_descriptor.annotation
    choices = [one.value for one in words] if hasattr(words, "__members__") else []
    kind = " / ".join(map(str, choices)) or getattr(words, "__name__", "text").lower()
    found = {
        "str": "text",
        "list": "text",
        "path": "file or folder",
        "int": "number",
        "float": "number",
        "datetime": "date",
    }.get(kind, kind)
    needed = "required" if param.required else ""
    usual = "" if param.default in (None, "", ()) else f"usually {_plain(param.default)}"
    often = "may be repeated" if getattr(param, "multiple", False) else ""
    return ", ".join(one for one in (found, needed, often, usual) if one)


def _plain(value: Any) -> str:
    return str(getattr(value, "value", value))
