"""What was typed and not understood, told without repeating it: it may be a secret.

A secret behind a misspelt option, or in the place of another word, would otherwise stand in the
error, and the error in the log of whatever ran the command.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, cast

from typer import BadParameter
from typer.core import TyperGroup, TyperOption

if TYPE_CHECKING:
    from typer import Context, TyperException

_OPTION: Final = re.compile(r"--?[a-z]+(?:-[a-z]+){0,4}")
"""What options are spelled like; keys and tokens have digits or capitals."""
_LONGEST: Final = 24
_GLUED: Final = 2
"""More than these characters behind a known option are a value that was glued to it."""


def forget_values(error: TyperException) -> None:
    """Change the words of an error about the command line to ones that repeat no value.

    What commands say themselves, of options that they know, stays.
    """
    context: Context | None = getattr(error, "ctx", None)
    option: str | None = getattr(error, "option_name", None)
    if context is None or isinstance(error, BadParameter):
        return
    if option is not None and hasattr(error, "possibilities"):
        error.message = _no_such_option(option, context)
        error.possibilities = None
    elif option is None and type(error) in BadParameter.__mro__:
        # Neither a missing value of a known option nor the help: the plain error quotes words.
        error.message = _not_understood(error.message, context)


def _no_such_option(typed: str, context: Context) -> str:
    root = cast("Context", context.find_root())
    if typed in _options(root):
        words = context.command_path.removeprefix(root.command_path).strip()
        return f"{typed} stands before the command: drivefeed {typed} … {words}"
    known = _options(context)
    near = get_close_matches(typed, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    glued = any(typed.startswith(one) and len(typed) > len(one) + _GLUED for one in known)
    if _OPTION.fullmatch(typed) and len(typed) <= _LONGEST and not glued:
        return f"There is no option {typed}.{hint}"
    return f"There is no such option; it is not repeated here, because it may be a secret.{hint}"


def _options(context: Context) -> list[str]:
    return [
        name
        for one in context.command.get_params(context)
        if isinstance(one, TyperOption)
        for name in (*one.opts, *one.secondary_opts)
    ]


def _not_understood(said: str, context: Context) -> str:
    command = context.command
    if not isinstance(command, TyperGroup):
        return (
            "There is more than this command takes; what, is not repeated here, because it may be "
            "a secret. Values of options stand behind their option."
        )
    if said.startswith("Missing"):
        return said
    offered = said.rpartition("Did you mean")[2] if "Did you mean" in said else ""
    near = [name for name in command.list_commands(context) if f"'{name}'" in offered]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return (
        "There is no such command; what was typed is not repeated here, because it may be a "
        f"secret.{hint}"
    )
