"""Faults of one page of delta or children: what it shows in place of what it should."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphsim.exchange import Exchange
    from graphsim.faults import Fault

Shown = dict[str, Any]


def distorted(exchange: Exchange, shown: Sequence[Shown | msgspec.Raw]) -> Sequence[Any]:
    """Return a page's items as the faults that strike the request show them."""
    for kind, change in _CHANGES.items():
        fault = exchange.fault(kind)
        if fault is not None:
            shown = change(fault, [_loose(one) for one in shown])
    return shown


def limited(exchange: Exchange, limit: int) -> int:
    """Return how many items a page has, given how many it should have."""
    fault = exchange.fault("page_size")
    if fault is None:
        return limit
    drawn = exchange.faults.draw(fault, ("size", fault.hits))
    return fault.least + int(drawn * (fault.most - fault.least + 1))


def _loose(one: Shown | msgspec.Raw) -> Shown:
    if isinstance(one, msgspec.Raw):
        return msgspec.json.decode(one, type=dict[str, Any])
    return one


def _is_meant(fault: Fault, one: Shown) -> bool:
    return not fault.only or one.get("id") in fault.only or one.get("name") in fault.only


def _drop_fields(fault: Fault, shown: list[Shown]) -> list[Shown]:
    kept = []
    for one in shown:
        if _is_meant(fault, one):
            for field in fault.fields:
                one = _without(one, field.split("."))  # noqa: PLW2901 - it is reduced step by step
        kept.append(one)
    return kept


def _without(one: Shown, path: list[str]) -> Shown:
    name, *rest = path
    if name not in one:
        return one
    if not rest:
        return {key: value for key, value in one.items() if key != name}
    inner = one[name]
    return one | {name: _without(inner, rest)} if isinstance(inner, dict) else one


def _set_fields(fault: Fault, shown: list[Shown]) -> list[Shown]:
    changed = []
    for one in shown:
        if _is_meant(fault, one):
            for field, value in fault.values.items():
                one = _with(one, field.split("."), value)  # noqa: PLW2901 - step by step, as above
        changed.append(one)
    return changed


def _with(one: Shown, path: list[str], value: Any) -> Shown:
    name, *rest = path
    if not rest:
        return one | {name: value}
    inner = one.get(name)
    return one | {name: _with(inner if isinstance(inner, dict) else {}, rest, value)}


def _churn(fault: Fault, shown: list[Shown]) -> list[Shown]:
    """Give items other tags, of the same form, that were never seen before."""
    changed = []
    for one in shown:
        tags = {name: one[name] for name in ("eTag", "cTag") if name in one}
        if _is_meant(fault, one):
            one = one | {name: _other_tag(tag, fault.hits) for name, tag in tags.items()}  # noqa: PLW2901
        changed.append(one)
    return changed


def _other_tag(tag: str, number: int) -> str:
    front, comma, version = tag.strip('"').rpartition(",")
    if not comma:
        return f"{tag}x{number}"
    return f'"{front},{int(version) + 1000 + number}"'


def _cycle(fault: Fault, shown: list[Shown]) -> list[Shown]:  # noqa: ARG001 - as the others
    folders = [one for one in shown if "folder" in one and "root" not in one]
    if not folders:
        return shown
    first, second = folders[0], folders[min(1, len(folders) - 1)]
    above = {first["id"]: second["id"], second["id"]: first["id"]}
    return [
        _with(one, ["parentReference", "id"], above[one["id"]]) if one["id"] in above else one
        for one in shown
    ]


def _duplicate(fault: Fault, shown: list[Shown]) -> list[Shown]:  # noqa: ARG001 - as the others
    return [one for pair in zip(shown, shown, strict=True) for one in pair]


def _shuffle(fault: Fault, shown: list[Shown]) -> list[Shown]:  # noqa: ARG001 - as the others
    return shown[::-1]


_CHANGES = {
    "drop_fields": _drop_fields,
    "set_fields": _set_fields,
    "churn": _churn,
    "cycle": _cycle,
    "duplicate": _duplicate,
    "shuffle": _shuffle,
}
