"""The options of a policy as flags of a command, made from the table of options."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drivefeed.domain.policy_options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.domain.policy_options import Option

_PANEL = "What the connection wants"


def with_policy_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command a flag for each option; it gets those that were said as ``written``.

    The values are text, as :func:`drivefeed.domain.policies.policy_of` reads them, so that all
    problems are told at once.
    """

    @wraps(command)
    def with_flags(**values: Any) -> None:
        said = {option.name: values.pop(option.name) for option in OPTIONS}
        # A list that was not given arrives empty.
        written = {name: value for name, value in said.items() if value is not None and value != []}
        command(written=written, **values)

    signature = inspect.signature(command, eval_str=True)
    own = [one for one in signature.parameters.values() if one.name != "written"]
    flags = [
        inspect.Parameter(
            option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind
        )
        for option in OPTIONS
        for kind in [_kind_of(option)]
    ]
    parameters = [*own, *flags]
    # What Typer asks a function for its parameters with.
    vars(with_flags)["__signature__"] = signature.replace(parameters=parameters)
    with_flags.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_flags


def _kind_of(option: Option) -> Any:
    flag = f"--{option.name.replace('_', '-')}"
    words = f"{option.meaning} Allowed: {option.allowed}."
    if option.name == "subfolders":
        # A switch: there is nothing to write behind it.
        names = f"{flag}/--no-subfolders"
        return Annotated[
            bool | None, typer.Option(names, help=option.meaning, rich_help_panel=_PANEL)
        ]
    if option.many:
        more = f"{words} Say it again for more; 'none' for none."
        return Annotated[list[str] | None, typer.Option(flag, help=more, rich_help_panel=_PANEL)]
    return Annotated[str | None, typer.Option(flag, help=words, rich_help_panel=_PANEL)]
