"""Faults from a file: TOML with one ``[[fault]]`` table for each, in the order they are added.

seed = 7

[[fault]]
kind = "status"
op = "delta"          # fields of the match may stand beside the others
status = 503
page = 3
count = 2

[[quirks]]
drive = "memory"      # by id or name; all drives without it
delay = 30
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from graphsim.faults import Fault, Match
from graphsim.quirks import Quirks

if TYPE_CHECKING:
    from pathlib import Path

    from graphsim.allowance import Allowance
    from graphsim.app import Application

_T = TypeVar("_T")


class Limits(msgspec.Struct, forbid_unknown_fields=True):
    """What of the allowance is changed."""

    per_minute: int | msgspec.UnsetType | None = msgspec.UNSET
    per_day: int | msgspec.UnsetType | None = msgspec.UNSET
    scale: float | msgspec.UnsetType = msgspec.UNSET
    extension: float | msgspec.UnsetType = msgspec.UNSET

    def apply(self, allowance: Allowance) -> None:
        """Change what is stated."""
        for name in self.__struct_fields__:
            if (value := getattr(self, name)) is not msgspec.UNSET:
                setattr(allowance, name, value)


class Script(msgspec.Struct, forbid_unknown_fields=True):
    """What a file says."""

    seed: int = 0
    fault: list[dict[str, Any]] = []
    quirks: list[dict[str, Any]] = []
    allowance: Limits = msgspec.field(default_factory=Limits)


def read_script(path: Path) -> Script:
    """Read a script.

    Raises:
        OSError: The file can't be read.
        ValueError: It is no TOML, or holds something else than a script.
    """
    return parse_script(path.read_text("utf-8"), str(path))


def parse_script(text: str, name: str = "the script") -> Script:
    """Return what a script's text says.

    Raises:
        ValueError: It is no TOML, or holds something else than a script.
    """
    try:
        return msgspec.convert(tomllib.loads(text), Script)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ValueError(f"{name} is no script of faults: {error}.") from error


def run_script(script: Script, app: Application) -> list[Fault]:
    """Set the seed and the quirks, and add the faults; return them.

    Raises:
        ValueError: A fault or a quirk does not exist, or there is no such drive.
    """
    added = [as_fault(one) for one in script.fault]
    app.faults.seed = script.seed
    script.allowance.apply(app.allowance)
    for given in script.quirks:
        wanted = dict(given)
        named = wanted.pop("drive", None)
        meant = [one for one in app.drives if named in {None, one.id, one.name}]
        if not meant:
            raise ValueError(f"There is no drive called {named}.")
        for drive in meant:
            drive.quirks = changed_quirks(drive.quirks, wanted)
    return [app.faults.insert(fault) for fault in added]


def changed_quirks(quirks: Quirks, wanted: dict[str, Any]) -> Quirks:
    """Return quirks with some of them changed.

    Raises:
        ValueError: There is no such quirk, or it has no such value.
    """
    return _converted({**msgspec.to_builtins(quirks), **wanted}, Quirks)


def as_fault(given: dict[str, Any]) -> Fault:
    """Return a fault from a table in which fields of the match may stand beside the others.

    Raises:
        ValueError: A field does not exist or has the wrong type.
    """
    fields = dict(given)
    match = dict(fields.pop("match", {}))
    match |= {name: fields.pop(name) for name in Match.__struct_fields__ if name in fields}
    return _converted({**fields, "match": match}, Fault)


def _converted(given: dict[str, Any], kind: type[_T]) -> _T:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}.") from error
