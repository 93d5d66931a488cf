"""Microsoft Graph's drive resources: what each address answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphsim.addressing import Address, parse_options
from graphsim.errors import GraphError, invalid_request, not_found
from graphsim.items import Item, Kind, Profile, normal_drive_id
from graphsim.pages import Pages, Question
from graphsim.rendering import SITE_HOST, render_drive, selected, site_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphsim.downloads import Downloads
    from graphsim.drives import Drive
    from graphsim.exchange import Exchange


class Caller:
    """Who asks: an app, or an app on behalf of a person."""

    def __init__(self, *, delegated: bool) -> None:
        self.delegated = delegated


class Graph:
    """Answers the addresses of drives, items and what leads to them.

    Args:
        drives: The drives; the first is the default drive of every user and site.
        users: Names a person may be called by (id, user principal name).
        pages: Answers children and delta.
        downloads: Makes download URLs, and sends bytes at once for the ``inline`` fault.
    """

    def __init__(
        self, drives: Sequence[Drive], users: Sequence[str], pages: Pages, downloads: Downloads
    ) -> None:
        self._drives = drives
        self._users = {name.lower() for name in users}
        self.pages = pages
        self._downloads = downloads

    async def answer(self, exchange: Exchange, address: Address, caller: Caller) -> None:
        """Answer one request.

        Raises:
            GraphError: The refusal to send.
        """
        if address.drive is None and address.owner is None:
            await self._elsewhere(exchange, address, caller)
            return
        options = parse_options(exchange.query)
        op = address.operation or ("item" if address.item else "drive")
        exchange.understood(op)
        drive = self._drive(address, caller)
        exchange.understood(op, drive=drive.id)
        if address.item is None:
            exchange.refuse_if_told()
            await self._drive_itself(exchange, address, drive, options)
            return
        item = await self._item(drive, address, options)
        if item is not None:
            exchange.understood(op, item=item.id, name=item.name)
        exchange.refuse_if_told()
        if exchange.method not in {"GET", "HEAD"}:
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
            case other:
                raise GraphError(501, "notSupported", f"graphsim has no {other} on items.")

    def _drive(self, address: Address, caller: Caller) -> Drive:
        if address.drive is not None:
            wanted = normal_drive_id(address.drive)
            for drive in self._drives:
                if normal_drive_id(drive.id) == wanted:
                    return self._existing(drive)
            raise not_found("The drive could not be found.")
        kind, _, name = (address.owner or "").partition(":")
        if kind == "me":
            self._need_person(caller)
        if kind == "user" and name.lower() not in self._users:
            raise GraphError(404, "itemNotFound", "User's mysite was not found.")
        if kind == "site":
            return self._existing(self._of_site(name)[0])
        return self._existing(self._drives[0])

    @staticmethod
    def _existing(drive: Drive) -> Drive:
        if drive.quirks.cutoff:
            message = "The drive id appears to be malformed, or is not that of a valid drive."
            raise invalid_request(message)
        return drive

    @staticmethod
    def _need_person(caller: Caller) -> None:
        if not caller.delegated:
            raise GraphError(400, "BadRequest", "/me needs a token given on behalf of a person.")

    def _of_site(self, name: str) -> list[Drive]:
        own = [one for one in self._drives if one.profile is not Profile.PERSONAL]
        if name.lower() not in {"root", SITE_HOST}:
            own = [one for one in own if site_id(one).lower() == name.lower()]
        if not own:
            raise not_found("The site could not be found.")
        return own

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
        headers = exchange.standard_headers()
        headers["Location"] = self._downloads.url(exchange, drive, item)
        await exchange.respond(302, headers, b"")

    async def _elsewhere(self, exchange: Exchange, address: Address, caller: Caller) -> None:
        parts = [part.lower() for part in address.other.strip("/").split("/")]
        exchange.understood("drives" if parts[-1] == "drives" else "directory")
        exchange.refuse_if_told()
        match parts:
            case ["me"]:
                self._need_person(caller)
                await exchange.json(200, self._person())
            case ["users", name] if name in self._users:
                await exchange.json(200, self._person())
            case ["me", "drives"]:
                self._need_person(caller)
                await self._list(exchange, [render_drive(one) for one in self._drives])
            case ["users", name, "drives"] if name in self._users:
                await self._list(exchange, [render_drive(one) for one in self._drives])
            case ["sites", name, "drives"]:
                await self._list(exchange, [render_drive(one) for one in self._of_site(name)])
            case ["sites"]:
                await self._list(exchange, [_site(one) for one in self._of_site("root")])
            case ["sites", name, *_] if ":" in name:
                await exchange.json(200, _site(self._of_site("root")[0]))
            case ["sites", name]:
                await exchange.json(200, _site(self._of_site(name)[0]))
            case _:
                raise not_found(f"graphsim has nothing at {address.other}.")

    def _person(self) -> dict[str, str]:
        names = sorted(self._users)
        return {
            "id": next((name for name in names if "@" not in name), ""),
            "displayName": "Drive Owner",
            "userPrincipalName": next((name for name in names if "@" in name), ""),
        }

    @staticmethod
    async def _list(exchange: Exchange, value: list[dict[str, Any]]) -> None:
        await exchange.json(200, {"value": value})


def _site(drive: Drive) -> dict[str, str]:
    return {"id": site_id(drive), "name": drive.name, "webUrl": f"https://{SITE_HOST}"}


def _resolved(drive: Drive, address: Address) -> Item | None:
    start = drive.tree.root if address.item == "root" else drive.tree.live(address.item or "")
    if start is None or not address.path:
        return start
    return drive.tree.resolve(start, address.path)
