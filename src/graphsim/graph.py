"""Microsoft Graph's drive resources: what each address answers."""

from __future__ import annotations

from typing import Any, TYPE_CHECKING
from urllib.parse import quote, urlencode

from graphsim.addressing import Address, parse_options
from graphsim.errors import GraphError, invalid_request, not_found, resync_required
from graphsim.items import Item, Kind, Profile, normal_drive_id
from graphsim.rendering import SITE_HOST, render_drive, render_item, selected, site_id
from graphsim.rounds import Wish, is_resync
from graphsim.seals import BadSealError, Seals

if TYPE_CHECKING:
    from graphsim.drives import Drive
    from graphsim.exchange import Exchange
    from collections.abc import Callable, Sequence

_LARGEST_PAGE = 1000


class Caller:
    """Who asks: an app, or an app on behalf of a person."""

    def __init__(self, *, delegated: bool) -> None:
        self.delegated = delegated


class Graph:
    """Answers the addresses of drives, items and what leads to them.

    Args:
        drives: The drives; the first is the default drive of every user and site.
        seals: Makes paging tokens.
        users: Names a person may be called by (id, user principal name).
        page_size: The most items on a page; ``$top`` can only lower it.
        download_url: Makes the pre-authenticated URL of a file for an exchange.
        direct: Sends a file's bytes at once, for the ``inline`` fault.
    """

    def __init__(
        self,
        drives: Sequence[Drive],
        seals: Seals,
        users: Sequence[str],
        page_size: int,
        download_url: Callable[[Exchange, Drive, Item], str],
        direct: Any,
    ) -> None:
        self._drives = drives
        self._seals = seals
        self._users = {name.lower() for name in users}
        self.page_size = page_size
        self._download_url = download_url
        self._direct = direct

    async def answer(self, exchange: Exchange, address: Address, caller: Caller) -> None:
        """Answer one request.

        Raises:
            GraphError: The refusal to send.
        """
        options = parse_options(exchange.query)
        if address.drive is None and address.owner is None:
            await self._elsewhere(exchange, address, caller)
            return
        op = address.operation or ("item" if address.item else "drive")
        exchange.understood(op)
        drive = self._drive(address, caller)
        exchange.understood(op, drive=drive.id)
        if address.item is None:
            exchange.refuse_if_told()
            await self._drive_itself(exchange, address, drive, options)
            return
        if op != "content":
            await drive.refresh(at_once=op == "delta" and not options.get("token"))
        item = self._item(drive, address)
        if item is not None:
            exchange.understood(op, item=item.id, name=item.name)
        exchange.refuse_if_told()
        if exchange.method not in {"GET", "HEAD"}:
            raise GraphError(501, "notSupported", "graphsim's drives change at their source only.")
        if item is None:
            raise not_found()
        await self._operate(exchange, address, drive, item, options)

    async def _operate(
        self,
        exchange: Exchange,
        address: Address,
        drive: Drive,
        item: Item,
        options: dict[str, str],
    ) -> None:
        if address.operation == "":
            shown = {"@odata.context": f"{exchange.base}{address.prefix}/$metadata#driveItem"}
            shown |= self._shown(exchange, drive, item, options.get("select"))
            await exchange.json(200, shown)
        elif address.operation == "children":
            await self._children(exchange, address, drive, item, options)
        elif address.operation == "delta":
            await self._delta(exchange, address, drive, item, options)
        elif address.operation in {"content", "contentstream"}:
            await self._content(exchange, drive, item)
        else:
            raise GraphError(501, "notSupported", f"graphsim has no {address.operation} on items.")

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
            raise invalid_request(
                "The provided drive id appears to be malformed, or does not represent a valid drive."
            )
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

    @staticmethod
    def _item(drive: Drive, address: Address) -> Item | None:
        start = drive.tree.root if address.item == "root" else drive.tree.live(address.item or "")
        if start is None or not address.path:
            return start
        return drive.tree.resolve(start, address.path)

    async def _drive_itself(
        self, exchange: Exchange, address: Address, drive: Drive, options: dict[str, str]
    ) -> None:
        if address.operation:
            raise GraphError(501, "notSupported", f"graphsim has no {address.operation} on drives.")
        await drive.refresh()
        await exchange.json(200, selected(render_drive(drive), options.get("select")))

    def _shown(
        self,
        exchange: Exchange,
        drive: Drive,
        item: Item,
        select: str | None,
        *,
        in_delta: bool = False,
    ) -> dict[str, Any]:
        def url(of: Item) -> str:
            return self._download_url(exchange, drive, of)

        shown = render_item(drive, item, url, in_delta=in_delta)
        return selected(shown, select)

    async def _children(
        self,
        exchange: Exchange,
        address: Address,
        drive: Drive,
        item: Item,
        options: dict[str, str],
    ) -> None:
        limit = self._limit(options)
        children = sorted(drive.tree.children(item.id), key=lambda child: (child.name, child.id))
        if skip := options.get("skiptoken"):
            try:
                after = self._seals.open("children", skip)["after"]
            except BadSealError as error:
                raise invalid_request("The skip token is malformed.") from error
            children = [child for child in children if [child.name, child.id] > after]
        page = children[:limit]
        select = options.get("select")
        shown = [self._shown(exchange, drive, child, select) for child in page]
        answer: dict[str, Any] = {
            "@odata.context": f"{exchange.base}{address.prefix}/$metadata#Collection(driveItem)",
            "@odata.count": len(children),
            "value": self._dropped(exchange, shown),
        }
        if len(children) > limit:
            last = [page[-1].name, page[-1].id]
            keep = {f"${name}": options[name] for name in ("top", "select") if name in options}
            keep["$skiptoken"] = self._seals.seal("children", {"after": last})
            answer["@odata.nextLink"] = f"{exchange.base}{exchange.raw_path}?{_query(keep)}"
        await exchange.json(200, answer)

    async def _delta(
        self,
        exchange: Exchange,
        address: Address,
        drive: Drive,
        item: Item,
        options: dict[str, str],
    ) -> None:
        scope = self._scope(drive, item)
        path = f"{address.prefix}/drives/{quote(drive.id, safe='!')}/" + (
            f"items/{quote(item.id, safe='!')}/delta" if scope else "root/delta"
        )
        if gone := exchange.fault("gone"):
            location = f"{exchange.base}{path}" if gone.location else None
            raise resync_required(location, gone.inner or "resyncChangesApplyDifferences")
        if fault := exchange.fault("empty_page"):
            link = f"{exchange.base}{exchange.asked.url}"
            link += f"{'&' if '?' in link else '?'}empty={fault.hits}"
            await exchange.json(200, {"value": [], "@odata.nextLink": link})
            return
        wish = Wish(options.get("select"), _excludes_parents(exchange), scope)
        token = address.argument or options.get("token") or options.get("deltatoken")
        try:
            page = drive.rounds.page(token, wish, self._limit(options))
        except GraphError as error:
            if is_resync(error):
                error.headers["Location"] = f"{exchange.base}{path}"
            raise
        select = page.wish.select
        shown = [self._shown(exchange, drive, one, select, in_delta=True) for one in page.items]
        if exchange.fault("duplicate"):
            shown = [one for item_shown in shown for one in (item_shown, item_shown)]
        if exchange.fault("shuffle"):
            shown.reverse()
        link = self._delta_link(exchange, address, drive, item, path, page.token, select)
        name = "@odata.deltaLink" if page.is_last else "@odata.nextLink"
        if exchange.fault("loop"):
            name, link = "@odata.nextLink", f"{exchange.base}{exchange.asked.url}"
        context = f"{exchange.base}{address.prefix}/$metadata#Collection(driveItem)"
        shown = self._dropped(exchange, shown)
        await exchange.json(200, {"@odata.context": context, name: link, "value": shown})

    @staticmethod
    def _scope(drive: Drive, item: Item) -> str | None:
        if item.parent_id is None:
            return None
        if drive.quirks.scoped_delta == "not_supported":
            raise GraphError(501, "notSupported", "view.delta can only be called on the root.")
        if drive.quirks.scoped_delta == "not_found":
            raise not_found()
        return item.id

    @staticmethod
    def _delta_link(
        exchange: Exchange,
        address: Address,
        drive: Drive,
        item: Item,
        path: str,
        token: str,
        select: str | None,
    ) -> str:
        keep = {"$select": select} if select else {}
        if drive.quirks.link_form == "function":
            base = f"{exchange.base}{address.prefix}/drives('{drive.id}')/items('{item.id}')"
            tail = f"?{_query(keep)}" if keep else ""
            return f"{base}/microsoft.graph.delta(token='{token}'){tail}"
        return f"{exchange.base}{path}?{_query({**keep, 'token': token})}"

    async def _content(self, exchange: Exchange, drive: Drive, item: Item) -> None:
        if item.kind is not Kind.FILE:
            raise invalid_request("Only files have content.")
        if "malware" in item.facets:
            headers = {"X-Virus-Infected": "graphsim.test"}
            message = "The file is infected and can't be downloaded."
            raise GraphError(403, "malwareDetected", message, None, headers)
        if exchange.fault("inline"):
            await self._direct(exchange, drive, item)
            return
        headers = exchange.standard_headers()
        headers["Location"] = self._download_url(exchange, drive, item)
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

    @staticmethod
    def _dropped(exchange: Exchange, shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
        fault = exchange.fault("drop_fields")
        if fault is None:
            return shown
        return [{k: v for k, v in one.items() if k not in fault.fields} for one in shown]

    def _limit(self, options: dict[str, str]) -> int:
        top = options.get("top", "")
        wanted = int(top) if top.isdecimal() and int(top) > 0 else self.page_size
        return min(wanted, self.page_size, _LARGEST_PAGE)


def _site(drive: Drive) -> dict[str, str]:
    return {"id": site_id(drive), "name": drive.name, "webUrl": f"https://{SITE_HOST}"}


def _query(options: dict[str, str]) -> str:
    return urlencode(options, quote_via=quote, safe="$,@.")


def _excludes_parents(exchange: Exchange) -> bool:
    stated = exchange.headers.get("deltaexcludeparent", "false").lower() != "false"
    return stated or "deltaexcludeparent" in exchange.headers.get("prefer", "").lower()
