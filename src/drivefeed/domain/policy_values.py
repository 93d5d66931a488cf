"""What may stand behind an option of a policy: readers of values, and their words. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain import amounts
from drivefeed.domain.quiet import zone_of

if TYPE_CHECKING:
    from collections.abc import Callable

LEAST_INTERVAL_MS: Final = 10_000
LEAST_DEADLINE_MS: Final = 60_000
PERCENT: Final = 100
_NONE: Final = frozenset({"", "none"})
_YES_NO: Final = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_TYPE: Final = re.compile(r"[a-z0-9_-]{1,16}")


_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


class WrongValue(Exception):
    """The value is none of what is allowed."""


def flag(value: Any) -> bool:
    """Read yes or no."""
    if isinstance(value, bool):
        return value
    found = _YES_NO.get(str(value).strip().lower())
    if found is None:
        raise WrongValue
    return found


def _texts(value: Any) -> tuple[str, ...]:
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(one, str) for one in parts):
        raise WrongValue
    return tuple(dict.fromkeys(one.strip() for one in parts if one.strip().lower() not in _NONE))


def globs(value: Any) -> tuple[str, ...]:
    """Read globs; each must have more than slashes."""
    found = _texts(value)
    if any(not one.strip("/") for one in found):
        raise WrongValue
    return found


def types(value: Any) -> tuple[str, ...]:
    """Read file name endings, with or without dots, apart or with commas between."""
    split = [part for one in _texts(value) for part in re.split(r"[,\s]+", one) if part]
    found = tuple(dict.fromkeys(one.lower().removeprefix("*").lstrip(".") for one in split))
    if not all(_TYPE.fullmatch(one) for one in found):
        raise WrongValue
    return found


def at_least(least: int, read: Callable[[object], int | None]) -> Callable[[Any], int]:
    """Return a reader of amounts that are no smaller."""

    def value_of(value: Any) -> int:
        found = read(value)
        if found is None or found < least:
            raise WrongValue
        return found

    return value_of


def count(least: int, most: int | None = None) -> Callable[[Any], int]:
    """Return a reader of whole numbers."""

    def value_of(value: Any) -> int:
        try:
            found = int(value)
        except (TypeError, ValueError):
            raise WrongValue from None
        if isinstance(value, bool | float) or found < least or (most is not None and found > most):
            raise WrongValue
        return found

    return value_of


def or_none(read: Callable[[Any], Any], empty: Any = None) -> Callable[[Any], Any]:
    """Return a reader that takes ``none`` as well."""

    def value_of(value: Any) -> Any:
        if value is None or (isinstance(value, str) and value.strip().lower() in _NONE):
            return empty
        return read(value)

    return value_of


def one_of(*names: str) -> Callable[[Any], str]:
    """Return a reader of names."""

    def value_of(value: Any) -> str:
        found = str(value).strip().lower()
        if found not in names:
            raise WrongValue
        return found

    return value_of


def name(value: Any) -> str:
    """Read the name of a section of the settings; whether there is one is not known here."""
    found = str(value).strip()
    if not _NAME.fullmatch(found):
        raise WrongValue
    return found


def since(value: Any) -> tuple[int | None, int | None]:
    """Read a date or an age as (instant, age): one of them is set."""
    at = amounts.instant_from(value)
    if at is not None:
        return at, None
    age = amounts.duration_from(value) if isinstance(value, str) else None
    if not age:
        raise WrongValue
    return None, age


def window(value: Any) -> str:
    """Read a window of the day."""
    found = amounts.window_from(value)
    if found is None:
        raise WrongValue
    return f"{found[0]:%H:%M}-{found[1]:%H:%M}"


def zone(value: Any) -> str:
    """Read the name of a time zone."""
    name = str(value).strip()
    if not name or zone_of(name) is None:
        raise WrongValue
    return name


def list_words(value: tuple[str, ...]) -> str:
    """Tell a list."""
    return ", ".join(value) or "none"


def duration_words(value: int | None) -> str:
    """Tell a duration in milliseconds."""
    return "none" if value is None else amounts.duration_words(value)


def since_words(value: tuple[int | None, int | None]) -> str:
    """Tell a date, and the age from which it was counted back."""
    at, age = value
    if at is None:
        return "none"
    words = amounts.date_words(at)
    return words if age is None else f"{words} ({amounts.duration_words(age)} before it was set)"
