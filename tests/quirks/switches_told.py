"""The rows about being told of changes, and about lists to choose from; see ``switches``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from drivefeed.catalog import sources
from drivefeed.catalog.tables import drives
from drivefeed.domain.pace import Pace
from drivefeed.services import subscriptions
from drivefeed.sources.graph import browse
from drivefeed.web import change_calls
from quirks.switch import Switch

if TYPE_CHECKING:
    import pytest

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.subscriptions_due import Due

_TOLD = "quirks/test_told.py::test_"
_BROWSE = "quirks/test_browse.py::test_"
_CALLS = "unit/web/test_change_calls.py::test_"
_NEVER_MS = 10**15


def _no_second_look(patch: pytest.MonkeyPatch) -> None:
    at_once = drives.c.woken_at.is_(None) | (drives.c.woken_at <= drives.c.told_at)
    is_over = drives.c.last_round_at + sources._SHORTEST <= sources._NOW
    due = select(drives).where(is_over | at_once, ~sources._OCCUPIED)
    patch.setattr(sources, "_DUE", due)


def _pages_are_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(browse, "children", browse._children)


def _every_site_is_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(browse, "_is_container", lambda _: False)


def _another_answer(patch: pytest.MonkeyPatch) -> None:
    original = change_calls.PlainTextResponse
    patch.setattr(change_calls, "PlainTextResponse", lambda _: original("OK"))


def _items_are_expected(patch: pytest.MonkeyPatch) -> None:
    original = change_calls._calls

    async def calls(request: Any) -> list[dict[str, Any]]:
        return [one for one in await original(request) if one["resourceData"]["id"]]

    patch.setattr(change_calls, "_calls", calls)


def _the_word_is_relied_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pace, "between_looks", lambda *_, **__: _NEVER_MS)


def _silence_is_borne(patch: pytest.MonkeyPatch) -> None:
    original = subscriptions.due_subscriptions

    async def due(catalog: Catalog, *, wants: bool, silence_ms: int) -> Due:
        del silence_ms
        return await original(catalog, wants=wants, silence_ms=_NEVER_MS)

    patch.setattr(subscriptions, "due_subscriptions", due)


def _nothing_is_renewed(patch: pytest.MonkeyPatch) -> None:
    async def ended(*_: Any) -> None:
        """Let it end."""

    patch.setattr(subscriptions.Subscribing, "_renew", ended)


TOLD = (
    Switch(
        "18b",
        "a word that comes before delta shows the change",
        "catalog.sources.wake_due_drives",
        f"{_TOLD}18_a_word",
        _no_second_look,
    ),
    Switch(
        "21",
        "listings of a folder that skip and repeat",
        "sources.graph.browse.children",
        f"{_BROWSE}21",
        _pages_are_believed,
    ),
    Switch(
        "48",
        "containers that are listed as sites",
        "sources.graph.browse.sites",
        f"{_BROWSE}48",
        _every_site_is_one,
    ),
    Switch(
        "91",
        "a handshake with any characters",
        "web.change_calls._handshake",
        f"{_CALLS}the_handshake",
        _another_answer,
    ),
    Switch(
        "92",
        "word of a change without an item",
        "web.change_calls.changed",
        f"{_TOLD}92",
        _items_are_expected,
    ),
    Switch(
        "94a",
        "a dead subscription, and changes",
        "domain.pace.Pace.between_looks",
        f"{_TOLD}94_a_subscription",
        _the_word_is_relied_on,
    ),
    Switch(
        "94b",
        "a dead subscription that nobody tells of",
        "catalog.subscriptions_due.due_subscriptions",
        f"{_TOLD}94_a_subscription",
        _silence_is_borne,
    ),
    Switch(
        "94c",
        "a subscription that ends",
        "services.subscriptions.Subscribing._renew",
        f"{_TOLD}94_it_is",
        _nothing_is_renewed,
    ),
)
