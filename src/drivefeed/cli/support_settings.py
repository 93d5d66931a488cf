"""Settings for a support bundle: numbers and choices are shown, secrets never, names on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, SecretStr

from drivefeed.domain.policy_options import BY_NAME
from drivefeed.domain.reasons import Reason
from drivefeed.ports import Stage
from drivefeed.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drivefeed.services.bundle_veil import Veil

_SHOWN: Final = frozenset(
    {
        *("cloud", "log_level", "kind", "severity", "tls", "on_delete", "backend", "priority"),
        *("interval", "quiet_hours", "time_zone", "deadline", "modified_since", "queue_prefix"),
        *("types", "region", "web_host"),
    }
)
"""Text that names nobody: choices, spans of time, endings of files."""
_PARTS: Final = (
    *("settings", "disk", "catalog", "secret key", "queue", "store", "index", "backend", "clock"),
    *("network", "proxy", "trust", "account", "drive", "connection", "daemon", "up", "init"),
)


def shown(value: Any, veil: Veil, name: str = "") -> Any:
    """Return settings as JSON values.

    Secrets become ``(secret)`` by their type; other text is shown where it is a choice, and else
    only whether there is any, unless names are wanted.
    """
    if isinstance(value, SecretStr):
        return "(secret)"
    if isinstance(value, BaseModel):
        return {
            field: shown(getattr(value, field), veil, field) for field in type(value).model_fields
        }
    if isinstance(value, dict):
        return {str(key): shown(one, veil, name) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [shown(one, veil, name) for one in value]
    if value is None or isinstance(value, bool | int | float) or not str(value):
        return value
    return veil.text(str(value)) if veil.with_names or name in _SHOWN else "(set)"


def words_of_ours() -> frozenset[str]:
    """Return words that stand in quotes in our sentences and name nobody's things."""
    return frozenset({*_fields(Settings, ""), *BY_NAME, *Reason, *Stage, *_PARTS})


def _fields(model: type[BaseModel], before: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"{before}{name}"
        inner: Any = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _fields(inner, f"{name}.")
