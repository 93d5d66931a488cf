"""Microsoft Graph's drive resources: what each address answers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from graphsim.addressing import Address, parse_options
from graphsim.errors import GraphError, invalid_request, not_found
from graphsim.items import Item, Kind
from graphsim.labels import OPERATION, extract_labels
from graphsim.pages import Pages, Question
from graphsim.permissions import list_permissions
from graphsim.places import Places
from graphsim.rendering import render_drive, selected
from graphsim.subscriptions import Subscriptions

if TYPE_CHECKING:
    from graphsim.clock import Clock
    from graphsim.courier import Courier
    from graphsim.downloads import Downloads
    from graphsim.drive import Drive
    from graphsim.estate import Estate
    from graphsim.exchange import Exchange
    from graphsim.rights import Caller
    from graphsim.tenancy import Person


class Graph:
    """Answers the addresses of drives, items and what leads to them.

    Args:
        estate: The drives, and who and what they belong to.
        pages: Answers children and delta.
        downloads: Makes download URLs, and sends bytes at once for the ``inline`` fault.
        clock: Decides when subscriptions end.
        courier: Sends notifications.
    """

    def __init__(
        self, estate: Estate, pages: Pages, downloads: Downloads, clock: Clock, courier: Courier
    ) -> None:
        self._estate = estate
        self.pages = pages
        self._downloads = downloads
        self._places = Places(estate, pages)
        self.subscriptions = Subscriptions(clock, courier, self.drive_of)

    async def answer(self, exchange: Exchange, address: Address, caller: Caller) -> None:
        """Answer one request.

        Raises:
            GraphError: The refusal to send.
        """
        options = parse_options(exchange.query)
        first, *rest = address.other.strip("/").split("/")
        if first.lower() == "subscriptions":
            await self.subscriptions.answer(exchange, rest, caller)
            return
        if address.drive is None and address.owner is None:
            await self._places.answer(exchange, address, caller, options)
            return
        if (address.owner or "").startswith("share:"):
            await self._shared(exchange, address, caller, options)
            return
        op = address.operation or ("item" if address.item else "drive")
        exchange.understood(op)
        drive = self.drive_of(address, caller)
        exchange.understood(op, drive=drive.id)
        caller.check_drive(drive)
        _check_open(drive)
        if address.item is None:
            exchange.refuse_if_told()
            await self._drive_itself(exchange, address, drive, options)
            return
        item = await self._item(drive, address, options)
        if item is not None:
            exchange.understood(op, item=item.id, name=item.name)
        if op in {"delta", "children"}:
            token = address.argument or options.get("token")
            number = self.pages.number(drive, op, token, options.get("skiptoken"))
            exchange.understood(op, page=number)
        exchange.refuse_if_told()
        if op == OPERATION:
            caller.check_labels(drive)
        if exchange.method not in ({"POST"} if op == OPERATION else {"GET", "HEAD"}):
            raise GraphError(501, "notSupported", "graphsim's drives change at their source only.")
        if item is None:
            raise not_found()
        url = self._downloads.url
        await self._operate(Question(exchange, address, drive, item, options, url))

    async def _operate(self, question: Question) -> None:
        match question.address.operation:
            case "":
                shown = question.shown(question.item, question.options.get("select"))
                context = {"@odata.context": question.context("driveItem")}
                await question.exchange.json(200, context | shown)
            case "children":
                await self.pages.children(question)
            case "delta":
                await self.pages.delta(question)
            case "content" | "contentstream":
                await self._content(question.exchange, question.drive, question.item)
            case labels if labels == OPERATION:
                await extract_labels(question)
            case "permissions":
                await list_permissions(question, self.pages.size)
            case other:
                raise GraphError(501, "notSupported", f"graphsim has no {other} on items.")

    def drive_of(self, address: Address, caller: Caller) -> Drive:
        """Return the drive that an address names.

        Raises:
            GraphError: There is none, or the caller does not see whose it is.
        """
        if address.drive is not None:
            return self._estate.drive(address.drive)
        kind, _, name = (address.owner or "").partition(":")
        if kind == "site":
            site = self._estate.site(name)
            if not site.drives:
                raise not_found("The site has no document library.")
            return site.drives[0]
        person = caller.need_person() if kind == "me" else self._places.person(name, caller)
        if not person.drives:
            raise _no_onedrive(person)
        return person.drives[0]

    async def _shared(
        self, exchange: Exchange, address: Address, caller: Caller, options: dict[str, str]
    ) -> None:
        """Answer ``/shares/{u!…}``: what a sharing link or a webUrl leads to."""
        exchange.understood("share")
        exchange.refuse_if_told()
        drive, item = self._estate.shared((address.owner or "").partition(":")[2])
        exchange.understood("share", drive=drive.id, item=item.id, name=item.name)
        caller.check_link(drive)
        _check_open(drive)
        await drive.refresh()
        wanted = Address(prefix=address.prefix, drive=drive.id, item=item.id)
        question = Question(exchange, wanted, drive, item, options, self._downloads.url)
        if address.item is None and not address.operation:
            shown = question.shown(item, "id,name,webUrl")
            await exchange.json(200, shown)
        elif address.operation == "children":
            await self.pages.children(question)
        elif address.operation == "":
            shown = question.shown(item, options.get("select"))
            await exchange.json(200, {"@odata.context": question.context("driveItem")} | shown)
        else:
            raise GraphError(501, "notSupported", f"graphsim has no {address.operation} on shares.")

    async def _item(self, drive: Drive, address: Address, options: dict[str, str]) -> Item | None:
        """Find the addressed item; a download is not worth a look at the whole drive first."""
        is_crawl = address.operation == "delta" and not (options.get("token") or address.argument)
        if address.operation != "content":
            await drive.refresh(at_once=is_crawl)
        item = _resolved(drive, address)
        if item is None and address.operation == "content":
            await drive.refresh()
            item = _resolved(drive, address)
        return item

    async def _drive_itself(
        self, exchange: Exchange, address: Address, drive: Drive, options: dict[str, str]
    ) -> None:
        if address.operation:
            raise GraphError(501, "notSupported", f"graphsim has no {address.operation} on drives.")
        await drive.refresh()
        await exchange.json(200, selected(render_drive(drive), options.get("select")))

    async def _content(self, exchange: Exchange, drive: Drive, item: Item) -> None:
        if item.kind is not Kind.FILE:
            raise invalid_request("Only files have content.")
        if "malware" in item.facets:
            headers = {"X-Virus-Infected": "graphsim.test"}
            message = "The file is infected and can't be downloaded."
            raise GraphError(403, "malwareDetected", message, None, headers)
        if exchange.fault("inline"):
            await self._downloads.send(exchange, drive, item)
            return
        await drive.check(item)
        headers = exchange.standard_headers()
        headers["Location"] = self._downloads.url(exchange, drive, item)
        await exchange.respond(302, headers, b"")


def _check_open(drive: Drive) -> None:
    if drive.quirks.cutoff:
        message = "The drive id appears to be malformed, or is not that of a valid drive."
        raise invalid_request(message)
    if drive.quirks.locked:
        message = "Access to this site has been blocked. Please contact the administrator."
        raise GraphError(423, "notAllowed", message, "resourceLocked")


def _no_onedrive(person: Person) -> GraphError:
    """Return one of the two refusals that were reported, in turns where both are wanted."""
    person.asked += 1
    if person.refusal == "mysite" or (person.refusal == "both" and person.asked % 2):
        return GraphError(404, "itemNotFound", "User's mysite was not found.")
    message = "Call was made to the default drive, which is not supported for apponly tokens."
    return invalid_request(message)


def _resolved(drive: Drive, address: Address) -> Item | None:
    start = drive.tree.root if address.item == "root" else drive.tree.live(address.item or "")
    if start is None or not address.path:
        return start
    names = [unquote(name) for name in address.path] if drive.quirks.unescapes_twice else None
    return drive.tree.resolve(start, names or address.path)
