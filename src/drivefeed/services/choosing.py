"""From a pasted address to a folder that can be connected: whose, through what, and what it meets.

Overlaps are told by ids: a folder lies inside of another one if that one's id is among its
ancestors, whatever the paths say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from drivefeed.catalog.routes import all_routes, connection_names, known_drive
from drivefeed.domain.errors import DrivefeedError, NeedsAttention, NotFound
from drivefeed.domain.identity import drive_key
from drivefeed.domain.names import usable_name
from drivefeed.domain.reasons import Reason
from drivefeed.domain.visible import visible
from drivefeed.sources.graph.addresses import parse_address
from drivefeed.sources.graph.folders import lineage
from drivefeed.sources.graph.looking import Refused
from drivefeed.sources.graph.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.routes import KnownDrive, Route
    from drivefeed.domain.model import Connection
    from drivefeed.domain.remote import RemoteItem
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.folders import ResolvedFolder
    from drivefeed.sources.graph.looking import Look
    from drivefeed.sources.graph.places import Address
    from drivefeed.sources.graph.source import GraphSource


class Relation(StrEnum):
    """How a folder lies to one that is connected already, on the same drive."""

    SAME = "same"
    INSIDE = "inside"
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class Overlap:
    """A connection that has files in common with the chosen folder.

    Attributes:
        path: of the connected folder below the drive's root.
    """

    relation: Relation
    connection: Connection
    path: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A folder, the org that wants it, and what it meets.

    Attributes:
        route: the account through which the drive is, or will be, read.
        asked: the account that found it. A drive is read through one account, and one that is
            followed already keeps its own; so the two can differ.
        same: the connection of this very folder, if there is one.
        overlaps: connections inside of which it lies, the innermost first, then those it contains.
        refused: accounts that were tried before and may not read it, each with why.
    """

    folder: ResolvedFolder
    route: Route
    asked: Route
    same: Connection | None
    overlaps: tuple[Overlap, ...]
    refused: tuple[tuple[str, str], ...] = ()


async def routes_for(
    catalog: Catalog,
    accounts: Mapping[str, GraphAccount],
    *,
    account: str | None,
    org: str | None,
) -> list[Route]:
    """Return the accounts that may be asked: the one that is named, or all of the org.

    Args:
        accounts: those that are ready for use, by id.
        account: name or id.
        org: name; needed only where several orgs have accounts.

    Raises:
        NeedsAttention: there is none, or it is not clear which.
    """
    known = [one for one in await all_routes(catalog) if one.account_id in accounts]
    if not known:
        raise NeedsAttention(
            "There is no account to read with yet. Add one, and come back.",
            reason=Reason.MISCONFIGURED,
        )
    found = [
        one
        for one in known
        if (org is None or one.org.casefold() == org.casefold())
        and (account is None or account.casefold() in {one.name.casefold(), one.account_id})
    ]
    if not found:
        names = ", ".join(f"'{one.name}'" for one in known)
        wanted = f"the account '{account}'" if account is not None else f"an account of '{org}'"
        raise NeedsAttention(
            f"There is no such thing as {wanted}; there are {names}.", reason=Reason.MISCONFIGURED
        )
    owners = sorted({one.org for one in found})
    if len(owners) > 1:
        raise NeedsAttention(
            f"Several organizations have accounts: {', '.join(owners)}. Say whose folder it will "
            "be with --org.",
            reason=Reason.MISCONFIGURED,
        )
    return found


async def choose(
    catalog: Catalog, source: GraphSource, routes: Sequence[Route], text: str
) -> Choice:
    """Find the folder of an address through the first account that may read it.

    Args:
        routes: accounts of one org, in the order in which they are tried.
        text: the address as it was pasted.

    Raises:
        NeedsAttention: it is no address, or no account may read what it names; says why.
        DrivefeedError: Microsoft Graph could not be asked.
    """
    address = parse_address(text)
    folder, asked, refused = await _first(source, routes, address)
    look = await source.look(asked.account_id)
    key = drive_key(look.account.cloud, folder.drive_id)
    known = await known_drive(catalog, asked.org_id, key)
    if known is None:
        return Choice(folder, asked, asked, None, (), refused)
    same, overlaps = await _meets(look, folder, known)
    everybody = {one.account_id: one for one in await all_routes(catalog)}
    route = everybody.get(known.account_id, asked)
    folder = replace(folder, account_id=route.account_id, account_name=route.name)
    return Choice(folder, route, asked, same, overlaps, refused)


async def _first(
    source: GraphSource, routes: Sequence[Route], address: Address
) -> tuple[ResolvedFolder, Route, tuple[tuple[str, str], ...]]:
    refused: list[tuple[str, str]] = []
    last: DrivefeedError | None = None
    for route in routes:
        try:
            folder = await resolve(await source.look(route.account_id), address)
        except DrivefeedError as error:
            last = error
            refused.append((route.name, str(error)))
        else:
            return folder, route, tuple(refused)
    if last is None or len(refused) == 1:
        raise last or NotFound("There is no account to ask through.")
    sentences = dict.fromkeys(words for _, words in refused)
    if len(sentences) == 1:
        raise last
    told = "\n".join(f"  {name}: {words}" for name, words in refused)
    raise NeedsAttention(
        f"None of {len(refused)} accounts can read it.\n{told}",
        reason=getattr(last, "reason", Reason.ACCESS_DENIED),
    ) from last


async def _meets(
    look: Look, folder: ResolvedFolder, known: KnownDrive
) -> tuple[Connection | None, tuple[Overlap, ...]]:
    """Compare a folder with what is connected on its drive."""
    same: Connection | None = None
    inside: list[tuple[int, Overlap]] = []
    contains: list[Overlap] = []
    seen: dict[str, RemoteItem] = {}
    for one in known.connections:
        if one.root_item_id == folder.item_id:
            same = one
            continue
        try:
            line = await lineage(look, folder.drive_id, one.root_item_id, seen)
        except Refused:
            # Its folder is gone; it meets nothing.
            continue
        path = "/".join(name for _, name in reversed(line[:-1]))
        if one.root_item_id in folder.ancestors:
            distance = folder.ancestors.index(one.root_item_id)
            inside.append((distance, Overlap(Relation.INSIDE, one, path)))
        elif folder.item_id in [item_id for item_id, _ in line]:
            contains.append(Overlap(Relation.CONTAINS, one, path))
    inside.sort(key=lambda pair: pair[0])
    return same, (*(one for _, one in inside), *contains)


async def name_for(catalog: Catalog, choice: Choice, wanted: str | None) -> str:
    """Return what the connection will be called: as wished, as it is called, or by its folder.

    Raises:
        NeedsAttention: another connection of the org is called as it was wished, or it is no name.
    """
    if choice.same is not None and wanted in {None, choice.same.name}:
        return choice.same.name
    taken = {name.casefold() for name in await connection_names(catalog, choice.route.org_id)}
    folder = choice.folder
    if wanted is not None:
        wanted = usable_name(wanted)
        if wanted.casefold() in taken:
            raise NeedsAttention(
                f"There is a connection '{wanted}' already. Choose another name with --name.",
                reason=Reason.MISCONFIGURED,
            )
        return wanted
    place = folder.site_name or folder.drive_name
    # What somebody else called the folder is typed by whoever names the connection.
    own = visible(folder.name)
    for name in (own, f"{own} ({visible(place)})"):
        if name.casefold() not in taken:
            return name
    number = 2
    while f"{own} ({number})".casefold() in taken:
        number += 1
    return f"{own} ({number})"
