"""What is wrong with settings, as sentences for whoever wrote them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_CHOICES = re.compile(r"\^\((?P<words>[\w|]+)\)\$")
_OF_VARIABLE = re.compile(r'field "(?P<field>\w+)" from source "EnvSettingsSource"')
_PLAIN = {
    "extra_forbidden": "there is no such setting; docs/settings.md lists them",
    "missing": "it is missing",
    "string_pattern_mismatch": "it has another form than it has to; see docs/settings.md",
}
_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "a text in quotes",
    "list": "a list in [ ]",
    "path": "a path in quotes",
    "date": "a day such as 2027-01-31",
    "dict": "a table",
    "model": "a table",
}
"""By the beginning of pydantic's code of an error."""
_BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}


def problems_in(error: ValidationError) -> list[str]:
    """Return a sentence for each thing that is wrong, with the setting's name in front.

    Values are quoted only where a word of a few was wanted, so that no secret is.
    """
    return list(dict.fromkeys(_sentences(error)))


def unreadable_variable(error: ValueError) -> str | None:
    """Return the sentence for a table in the environment that is no JSON; None for other errors."""
    found = _OF_VARIABLE.search(str(error))
    if found is None:
        return None
    name = f"DRIVEFEED_{found['field'].upper()}"
    return (
        f"The variable {name} cannot be read: it sets a whole table, and is JSON. A single one of "
        f"its settings is named {name}__ and the setting, as docs/settings.md shows."
    )


def _sentences(error: ValidationError) -> Iterator[str]:
    for one in error.errors():
        names = [str(part) for part in one["loc"] if str(part) != "[key]"]
        yield f"{'.'.join(names)}: {_what(one)}".removeprefix(": ")


def _what(one: ErrorDetails) -> str:
    kind, context = one["type"], one.get("ctx", {})
    words = _PLAIN.get(kind)
    if kind == "value_error":
        words = str(context.get("error", one["msg"])).rstrip(".")
    elif kind in {"literal_error", "enum"}:
        words = _allowed(one, str(context.get("expected", "")).replace("'", ""))
    elif kind == "string_pattern_mismatch":
        found = _CHOICES.fullmatch(str(context.get("pattern", "")))
        words = _allowed(one, found["words"].replace("|", ", ")) if found else words
    elif kind in _BOUNDS:
        bound, key = _BOUNDS[kind]
        words = f"it has to be {bound} {context.get(key)}"
    if words is None:
        wanted = next((what for begin, what in _WANTED.items() if kind.startswith(begin)), None)
        words = f"it has to be {wanted}" if wanted else one["msg"]
    return f"{words}."


def _allowed(one: Any, words: str) -> str:
    return f"it is '{one['input']}'; allowed: {words}"
