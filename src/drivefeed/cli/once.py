"""Options are said once: Typer would take the last of several, and say nothing of the others."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typer.models import TyperInfo


class OnceCommand(TyperCommand):
    """A command that refuses an option that is said more often than it counts."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed; see Click's ``Command``."""
        refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)


class OnceGroup(TyperGroup):
    """A family of commands whose own options are said once, too."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed in front of the command's name; see Click's ``Group``."""
        refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)


class Commands(typer.Typer):
    """Typer's, with these classes for whatever is added to it."""

    def __init__(self, *, cls: type[OnceGroup] = OnceGroup, **more: Any) -> None:
        super().__init__(cls=cls, **more)

    def command(self, name: str | None = None, **more: Any) -> Callable[..., Any]:
        """Add a command; see ``typer.Typer``."""
        return super().command(name, cls=OnceCommand, **more)

    def narrowed(self, words: Sequence[str], *, valued: frozenset[str] = frozenset()) -> Commands:
        """Return these with the one command that is typed: making all ready takes 0.3 s.

        Args:
            words: what was typed. Where no command's name is at its place, everything is there, for
                help and for words about what was meant.
            valued: options with a value that may stand before the command's name.
        """
        words = _without_options(words, valued)
        typed = words[0] if words else None
        commands = [one for one in self.registered_commands if one.name == typed]
        groups = [one for one in self.registered_groups if _name_of(one) == typed]
        if not commands and not groups:
            return self
        found = copy(self)
        found.registered_commands = commands
        found.registered_groups = [_narrowed(one, words[1:]) for one in groups]
        return found


def _without_options(words: Sequence[str], valued: frozenset[str]) -> Sequence[str]:
    """Return what was typed from the first word on that is none of these options, nor its value."""
    while words and words[0].partition("=")[0] in valued:
        words = words[1 if "=" in words[0] else 2 :]
    return words


def _narrowed(group: TyperInfo, words: Sequence[str]) -> TyperInfo:
    if not isinstance(group.typer_instance, Commands):
        return group
    found = copy(group)
    found.typer_instance = group.typer_instance.narrowed(words)
    return found


def _name_of(group: TyperInfo) -> str | None:
    """Return a family's name, which is given where it is made or where it is added."""
    given = [group.name, *([group.typer_instance.info.name] if group.typer_instance else [])]
    return next((one for one in given if isinstance(one, str)), None)


def refuse_repeated(command: Any, ctx: Any, args: list[str]) -> None:
    """Look at what was typed for a command, before any of it counts.

    Args:
        command: whose options they are.
        ctx: of this call.
        args: what was typed behind its name.

    Raises:
        typer.BadParameter: an option that takes one value, or none, is there again. Its values may
            be secrets and are not repeated.
    """
    if ctx.resilient_parsing:
        return
    _, _, found = command.make_parser(ctx).parse_args(list(args))
    for one in found:
        is_once = isinstance(one, TyperOption) and one.expose_value and not one.multiple
        if is_once and found.count(one) > 1:
            name = "/".join((*one.opts, *one.secondary_opts))
            raise typer.BadParameter(
                f"{name} is there {found.count(one)} times. Say it once; of several, it is not "
                "clear which one counts.",
                ctx=ctx,
            )
