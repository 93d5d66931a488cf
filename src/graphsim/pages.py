"""Answers that come in pages: children and delta, with the faults that pages can have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from graphsim.errors import GraphError, invalid_request, not_found, resync_required
from graphsim.rendering import render_item, selected
from graphsim.rounds import Wish, is_resync
from graphsim.seals import BadSealError, Seals

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphsim.addressing import Address
    from graphsim.drives import Drive
    from graphsim.exchange import Exchange
    from graphsim.faults import Fault
    from graphsim.items import Item

_LARGEST_PAGE = 1000


@dataclass(frozen=True)
class Question:
    """A request whose address has been resolved to an item of a drive."""

    exchange: Exchange
    address: Address
    drive: Drive
    item: Item
    options: dict[str, str]
    download_url: Callable[[Exchange, Drive, Item], str]

    def shown(self, item: Item, select: str | None, *, in_delta: bool = False) -> dict[str, Any]:
        """Return an item as JSON, cut down to ``select``."""

        def url(of: Item) -> str:
            return self.download_url(self.exchange, self.drive, of)

        return selected(render_item(self.drive, item, url, in_delta=in_delta), select)

    def context(self, kind: str) -> str:
        """Return the ``@odata.context`` of an answer of this kind."""
        return f"{self.exchange.base}{self.address.prefix}/$metadata#{kind}"


class Pages:
    """Answers children and delta.

    Args:
        seals: Makes the skip tokens of children.
        size: The most items on a page; ``$top`` can only lower it.
    """

    def __init__(self, seals: Seals, size: int) -> None:
        self._seals = seals
        self.size = size

    async def children(self, question: Question) -> None:
        """Answer with a page of the live children, in the order of their names."""
        exchange, options = question.exchange, question.options
        limit = self._limit(options)
        children = question.drive.tree.children(question.item.id)
        children.sort(key=lambda child: (child.name, child.id))
        if skip := options.get("skiptoken"):
            try:
                after = self._seals.open("children", skip)["after"]
            except BadSealError as error:
                raise invalid_request("The skip token is malformed.") from error
            children = [child for child in children if [child.name, child.id] > after]
        page = children[:limit]
        shown = [question.shown(child, options.get("select")) for child in page]
        answer: dict[str, Any] = {
            "@odata.context": question.context("Collection(driveItem)"),
            "@odata.count": len(children),
            "value": _without_dropped_fields(exchange, shown),
        }
        if len(children) > limit:
            last = [page[-1].name, page[-1].id]
            keep = {f"${name}": options[name] for name in ("top", "select") if name in options}
            keep["$skiptoken"] = self._seals.seal("children", {"after": last})
            answer["@odata.nextLink"] = f"{exchange.base}{exchange.raw_path}?{_query(keep)}"
        await exchange.json(200, answer)

    async def listed(
        self, exchange: Exchange, values: list[dict[str, Any]], options: dict[str, str]
    ) -> None:
        """Answer with a page of a list that is already in its order.

        Raises:
            GraphError: 400 for a made-up skip token.
        """
        limit, start = self._limit(options), 0
        if skip := options.get("skiptoken"):
            try:
                start = int(self._seals.open("list", skip)["from"])
            except BadSealError as error:
                raise invalid_request("The skip token is malformed.") from error
        page = values[start : start + limit]
        shown = [selected(value, options.get("select")) for value in page]
        answer: dict[str, Any] = {"value": shown}
        if len(values) > start + limit:
            keep = {f"${name}": options[name] for name in ("top", "select") if name in options}
            keep |= {"search": options["search"]} if "search" in options else {}
            keep["$skiptoken"] = self._seals.seal("list", {"from": start + limit})
            answer["@odata.nextLink"] = f"{exchange.base}{exchange.raw_path}?{_query(keep)}"
        await exchange.json(200, answer)

    async def delta(self, question: Question) -> None:
        """Answer with a page of delta.

        Raises:
            GraphError: 400 for a bad token, 410 for an expired one, 501 or 404 below the root.
        """
        exchange, options = question.exchange, question.options
        start = _start_link(question)
        scope = _scope(question)
        if gone := exchange.fault("gone"):
            inner = gone.inner or "resyncChangesApplyDifferences"
            raise resync_required(start if gone.location else None, inner)
        if fault := exchange.fault("empty_page"):
            link = _own_link(exchange, fault)
            await exchange.json(200, {"value": [], "@odata.nextLink": link})
            return
        wish = Wish(options.get("select"), _excludes_parents(exchange), scope)
        token = question.address.argument or options.get("token")
        try:
            page = question.drive.rounds.page(token, wish, self._limit(options))
        except GraphError as error:
            if is_resync(error):
                error.headers["Location"] = start
            raise
        select = page.wish.select
        shown = [question.shown(one, select, in_delta=True) for one in page.items]
        if exchange.fault("duplicate"):
            shown = [one for pair in zip(shown, shown, strict=True) for one in pair]
        if exchange.fault("shuffle"):
            shown.reverse()
        link = _following_link(question, start, page.token, select)
        name = "@odata.deltaLink" if page.is_last else "@odata.nextLink"
        if loop := exchange.fault("loop"):
            name, link = "@odata.nextLink", _own_link(exchange, loop if loop.fresh else None)
        shown = _without_dropped_fields(exchange, shown)
        context = question.context("Collection(driveItem)")
        await exchange.json(200, {"@odata.context": context, name: link, "value": shown})

    def _limit(self, options: dict[str, str]) -> int:
        top = options.get("top", "")
        wanted = int(top) if top.isdecimal() and int(top) > 0 else self.size
        return min(wanted, self.size, _LARGEST_PAGE)


def _scope(question: Question) -> str | None:
    """Return the folder a delta is limited to: none for the root."""
    if question.item.parent_id is None:
        return None
    mode = question.drive.quirks.scoped_delta
    if mode == "not_supported":
        raise GraphError(501, "notSupported", "Delta can be asked of the root only.")
    if mode == "not_found":
        raise not_found()
    return question.item.id


def _start_link(question: Question) -> str:
    """Return the link that starts an enumeration, on the caller's host and prefix."""
    base = f"{question.exchange.base}{question.address.prefix}/drives/{_id(question.drive.id)}"
    if question.item.parent_id is None:
        return f"{base}/root/delta"
    return f"{base}/items/{_id(question.item.id)}/delta"


def _following_link(question: Question, start: str, token: str, select: str | None) -> str:
    keep = {"$select": select} if select else {}
    if question.drive.quirks.link_form != "function":
        return f"{start}?{_query({**keep, 'token': token})}"
    base = f"{question.exchange.base}{question.address.prefix}/drives('{_id(question.drive.id)}')"
    call = f"items('{_id(question.item.id)}')/microsoft.graph.delta(token='{token}')"
    return f"{base}/{call}" + (f"?{_query(keep)}" if keep else "")


def _own_link(exchange: Exchange, fault: Fault | None) -> str:
    """Return the link that was asked for; given a fault, spelled differently each time."""
    link = f"{exchange.base}{exchange.asked.url}"
    return f"{link}{'&' if '?' in link else '?'}again={fault.hits}" if fault else link


def _id(identifier: str) -> str:
    return quote(identifier, safe="!")


def _query(options: dict[str, str]) -> str:
    return urlencode(options, quote_via=quote, safe="$,@.")


def _without_dropped_fields(
    exchange: Exchange, shown: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    fault = exchange.fault("drop_fields")
    if fault is None:
        return shown
    return [{k: v for k, v in one.items() if k not in fault.fields} for one in shown]


def _excludes_parents(exchange: Exchange) -> bool:
    stated = exchange.headers.get("deltaexcludeparent", "false").lower() != "false"
    return stated or "deltaexcludeparent" in exchange.headers.get("prefer", "").lower()
