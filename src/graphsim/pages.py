"""Answers that come in pages: children, delta and lists of other things."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from graphsim.cursors import Page, Wish
from graphsim.errors import GraphError, invalid_request, not_found, resync_required
from graphsim.items import Item, Kind, Profile
from graphsim.page_faults import distorted, limited
from graphsim.rendering import render_item, selected
from graphsim.round_faults import Arrangement
from graphsim.rounds import is_resync
from graphsim.seals import BadSealError, Seals

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import msgspec

    from graphsim.addressing import Address
    from graphsim.drive import Drive
    from graphsim.exchange import Exchange
    from graphsim.faults import Fault

_LARGEST_PAGE = 1000
_YOUNG = 60.0
"""Seconds for which delta of a new folder may be refused."""


@dataclass(frozen=True)
class Question:
    """A request whose address has been resolved to an item of a drive."""

    exchange: Exchange
    address: Address
    drive: Drive
    item: Item
    options: dict[str, str]
    download_url: Callable[[Exchange, Drive, Item], str]

    @property
    def token(self) -> str | None:
        """The token of a delta request, wherever the link has it."""
        return self.address.argument or self.options.get("token")

    def shown(self, item: Item, select: str | None, *, in_delta: bool = False) -> dict[str, Any]:
        """Return an item as JSON, cut down to ``select``."""

        def url(of: Item) -> str:
            return self.download_url(self.exchange, self.drive, of)

        return selected(render_item(self.drive, item, url, in_delta=in_delta), select)

    def page(
        self, items: Sequence[Item], select: str | None, *, in_delta: bool = False
    ) -> list[dict[str, Any] | msgspec.Raw]:
        """Return the items of a page as JSON, without those that this caller is not shown."""
        hides = self.drive.profile is Profile.PERSONAL and not _sees_shortcuts(self.exchange)
        return [
            (in_delta and self.drive.raw(item, select))
            or self.shown(item, select, in_delta=in_delta)
            for item in items
            if not (hides and item.kind is Kind.SHORTCUT)
        ]

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
        """Answer with a page of the live children, in the order of their names.

        Raises:
            GraphError: 400 for a made-up skip token, and for a Personal Vault.
        """
        exchange, options = question.exchange, question.options
        if question.item.facets.get("specialFolder", {}).get("name") == "vault":
            raise GraphError(400, "invalidRequest", "ObjectHandle is Invalid", "invalidResourceId")
        limit = limited(exchange, self._limit(question.drive, options))
        children = question.drive.tree.children(question.item.id)
        children.sort(key=lambda child: (child.name, child.id))
        if skip := options.get("skiptoken"):
            after = self._skipped(skip)["after"]
            children = [child for child in children if [child.name, child.id] > after]
        page = children[:limit]
        if len(children) > limit > 0 and exchange.fault("swap"):
            page[-1] = children[limit]
        answer: dict[str, Any] = {
            "@odata.context": question.context("Collection(driveItem)"),
            "@odata.count": len(children),
            "value": distorted(exchange, question.page(page, options.get("select"))),
        }
        if len(children) > limit:
            last = [children[limit - 1].name, children[limit - 1].id] if limit else ["", ""]
            number = (exchange.asked.page or 1) + 1
            keep = {f"${name}": options[name] for name in ("top", "select") if name in options}
            keep["$skiptoken"] = self._seals.seal("children", {"after": last, "page": number})
            link = f"{exchange.base}{exchange.raw_path}?{_query(keep)}"
            answer["@odata.nextLink"] = _elsewhere(exchange, link)
        await exchange.json(200, answer)

    def number(self, drive: Drive, operation: str, token: str | None, skip: str | None) -> int:
        """Return which page of a list a request asks for."""
        if operation == "delta":
            return drive.rounds.number(token)
        try:
            return int(self._seals.open("children", skip).get("page", 1)) if skip else 1
        except BadSealError:
            return 1

    def _skipped(self, skip: str) -> dict[str, Any]:
        try:
            return self._seals.open("children", skip)
        except BadSealError as error:
            raise invalid_request("The skip token is malformed.") from error

    async def listed(
        self, exchange: Exchange, values: list[dict[str, Any]], options: dict[str, str]
    ) -> None:
        """Answer with a page of a list that is already in its order.

        Raises:
            GraphError: 400 for a made-up skip token.
        """
        limit, start = self._limit(None, options), 0
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
        exchange, options, rounds = question.exchange, question.options, question.drive.rounds
        start = _start_link(question)
        scope = _scope(question)
        if gone := exchange.fault("gone"):
            inner = gone.inner or "resyncChangesApplyDifferences"
            raise resync_required(start if gone.location else None, inner, gone.code)
        if fault := exchange.fault("empty_page"):
            link = _own_link(exchange, fault)
            await exchange.json(200, {"value": [], "@odata.nextLink": link})
            return
        wish = Wish(options.get("select"), _excludes_parents(exchange), scope)
        limit = limited(exchange, self._limit(question.drive, options))
        arrange = Arrangement(exchange, question.drive)
        try:
            page = rounds.page(question.token, wish, limit, arrange)
        except GraphError as error:
            if is_resync(error):
                error.headers["Location"] = start
            raise
        items = list(page.items)
        if page.is_last and exchange.fault("moving"):
            items += rounds.changed_meanwhile(page)
        shown = distorted(exchange, question.page(items, page.wish.select, in_delta=True))
        links = {
            name: _elsewhere(exchange, link) for name, link in _links(question, start, page).items()
        }
        context = question.context("Collection(driveItem)")
        await exchange.json(200, {"@odata.context": context, **links, "value": shown})

    def _limit(self, drive: Drive | None, options: dict[str, str]) -> int:
        size = (drive.quirks.page_size if drive else None) or self.size
        top = "" if drive and drive.quirks.ignore_top else options.get("top", "")
        wanted = int(top) if top.isdecimal() and int(top) > 0 else size
        return min(wanted, size, _LARGEST_PAGE)


def _sees_shortcuts(exchange: Exchange) -> bool:
    prefer = exchange.headers.get("prefer", "").lower().replace(" ", "")
    return "include-feature=addtoonedrive" in prefer


def _links(question: Question, start: str, page: Page) -> dict[str, str]:
    """Return the links of a page by their names, as the faults that strike it have them."""
    exchange, rounds, select = question.exchange, question.drive.rounds, page.wish.select
    name, token = "@odata.deltaLink" if page.is_last else "@odata.nextLink", page.token
    if page.is_last and page.own.empties == 0 and (late := exchange.fault("late_end")):
        name, token = "@odata.nextLink", rounds.late_end(page, max(late.number, 1))
    link = _following_link(question, start, token, select)
    if loop := exchange.fault("loop"):
        again = _following_link(question, start, rounds.again(page, loop.hits), select)
        return {"@odata.nextLink": again if loop.fresh else _own_link(exchange, None)}
    if exchange.fault("no_link"):
        return {}
    if exchange.fault("both_links"):
        return {"@odata.nextLink": link, "@odata.deltaLink": link}
    return {name: link}


def _elsewhere(exchange: Exchange, link: str) -> str:
    """Return a link, on another host if a fault says so."""
    fault = exchange.fault("foreign_link")
    return urlsplit(link)._replace(netloc=fault.host).geturl() if fault else link


def _scope(question: Question) -> str | None:
    """Return the folder a delta is limited to: none for the root."""
    if question.item.parent_id is None:
        return None
    mode = question.drive.quirks.scoped_delta
    if mode == "not_supported":
        message = "view.delta can only be called on the root."
        raise GraphError(501, "notSupported", message)
    is_young = question.drive.clock.now() < question.item.created + _YOUNG
    if mode == "not_found" or (mode == "not_found_yet" and is_young):
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
    form = question.drive.quirks.link_form
    rest = f"?{_query(keep)}" if keep else ""
    if form == "root_function":
        return f"{start}(token='{token}'){rest}"
    if form == "odd":
        return f"{start}?(token='{token}')" + (f"&{_query(keep)}" if keep else "")
    if form == "query":
        return f"{start}?{_query({**keep, 'token': token})}"
    base = f"{question.exchange.base}{question.address.prefix}/drives('{_id(question.drive.id)}')"
    return f"{base}/items('{_id(question.item.id)}')/microsoft.graph.delta(token='{token}'){rest}"


def _own_link(exchange: Exchange, fault: Fault | None) -> str:
    """Return the link that was asked for; given a fault, spelled differently each time."""
    link = f"{exchange.base}{exchange.asked.url}"
    return f"{link}{'&' if '?' in link else '?'}again={fault.hits}" if fault else link


def _id(identifier: str) -> str:
    return quote(identifier, safe="!")


def _query(options: dict[str, str]) -> str:
    return urlencode(options, quote_via=quote, safe="$,@.")


def _excludes_parents(exchange: Exchange) -> bool:
    stated = exchange.headers.get("deltaexcludeparent", "false").lower() != "false"
    return stated or "deltaexcludeparent" in exchange.headers.get("prefer", "").lower()
