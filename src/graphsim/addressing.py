"""What a Graph URL names: the many spellings of one address.

Parsed from the raw (still encoded) path, because an encoded ``'``, ``:`` or ``)`` inside an id or
a name must not be mistaken for syntax. Segments are compared without case.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

import msgspec

_PREFIX = re.compile(r"^(/v1\.0|/beta|/_api/v2\.0)(?=/|$)", re.IGNORECASE)
_KEY = r"(?:/(?P<{0}>[^/:()']+)|\('(?P<{0}_q>[^']+)'\))"
_DRIVE = re.compile(
    "^/(?:"
    r"(?P<me>me/drive)(?=/|$|\?)"
    "|(?:me/)?drives" + _KEY.format("drive") + "|users" + _KEY.format("user") + "/drive(?=/|$)"
    "|(?:sites|groups)"
    + _KEY.format("owner")
    + "/(?:drives"
    + _KEY.format("site_drive")
    + r"|drive(?=/|$))"
    ")",
    re.IGNORECASE,
)
_SITE_PATH = re.compile(r"^/sites/(?P<host>[^/:]+):(?P<path>/[^:]*)(?::(?=/|$))?", re.IGNORECASE)
_SHARE = re.compile(
    r"^/shares/(?P<share>[^/:]+)(?:/(?P<item>driveItem|root))?(?=/|$)", re.IGNORECASE
)
_ITEM = re.compile(
    r"^/(?:(?P<root>root)(?=[/:]|$)|items" + _KEY.format("item") + ")"
    r"(?::(?P<path>/[^:]*)(?::|$))?",
    re.IGNORECASE,
)
_OPERATION = re.compile(
    r"^/(?:microsoft\.graph\.|view\.|oneDrive\.)?(?P<name>[A-Za-z]+)"
    r"(?:\((?:token=)?(?:'(?P<argument>[^']*)')?\))?$",
    re.IGNORECASE,
)

_ODD_TOKEN = re.compile(r"^\(token=(?:'|%27)(?P<token>[^'%&]*)(?:'|%27)\)")
"""``delta?(token='…')``, as links in the documentation's examples have it."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed URL path below the version prefix; ids and names are decoded.

    ``drive`` is a drive id; ``owner`` is ``me``, ``user:{id}``, ``site:{id}`` or
    ``site:{host}:{path}`` where the URL names a default drive, and ``share:{id}`` for what is
    shared. Without either, ``other`` holds the remaining path, with ``~`` for a site by path.
    """

    prefix: str
    drive: str | None = None
    owner: str | None = None
    item: str | None = None
    """An item id, ``root``, or null for the drive itself."""
    path: list[str] | None = None
    """Names below the item, where the URL addresses by path."""
    operation: str = ""
    """``children``, ``delta``, ``content`` … in lower case; empty for the thing itself."""
    argument: str | None = None
    """The token of function-style delta."""
    other: str = ""
    site: str | None = None
    """``{host}:{path}`` where the URL names a site by its path."""


def parse_address(raw_path: str) -> Address | None:
    """Return what a raw URL path names, or ``None`` outside of Graph's prefixes."""
    match = _PREFIX.match(raw_path)
    if match is None:
        return None
    prefix, rest = match.group(0), raw_path[match.end() :].rstrip("/")
    rest = re.sub(r"%(?:27)", "'", rest) if re.search(r"\(%27", rest) else rest
    if shared := _SHARE.match(rest):
        kind, tail = (shared.group("item") or "").lower(), rest[shared.end() + 1 :].lower()
        link = f"share:{unquote(shared.group('share'))}"
        return Address(prefix=prefix, owner=link, item=kind or None, operation=tail)
    site = None
    if by_path := _SITE_PATH.match(rest):
        site = f"{by_path.group('host')}:{unquote(by_path.group('path'))}"
        rest = f"/sites/~{rest[by_path.end() :]}"
    found = _DRIVE.match(rest)
    if found is None:
        return Address(prefix=prefix, other=unquote(rest), site=site)
    drive, owner = _owner(found)
    if owner == "site:~":
        owner = f"site:{site}"
    rest = rest[found.end() :]
    if not rest:
        return Address(prefix=prefix, drive=drive, owner=owner)
    found = _ITEM.match(rest)
    if found is None:
        return Address(prefix=prefix, drive=drive, owner=owner, operation=rest[1:].lower())
    item = "root" if found.group("root") else unquote(found.group("item") or found.group("item_q"))
    path = unquote(found.group("path")).split("/") if found.group("path") else None
    rest = rest[found.end() :]
    operation = _OPERATION.match(rest)
    return Address(
        prefix=prefix,
        drive=drive,
        owner=owner,
        item=item,
        path=path,
        operation=operation.group("name").lower() if operation else unquote(rest[1:]).lower(),
        argument=unquote(operation.group("argument") or "") or None if operation else None,
    )


def parse_options(query: str) -> dict[str, str]:
    """Return a query's options by lower-case name, the OData ones without their ``$``."""
    if odd := _ODD_TOKEN.match(query):
        query = f"token={odd.group('token')}{query[odd.end() :]}"
    pairs = parse_qsl(query, keep_blank_values=True)
    return {name.removeprefix("$").lower(): value for name, value in pairs}


def _owner(found: re.Match[str]) -> tuple[str | None, str | None]:
    groups = {name: unquote(value) for name, value in found.groupdict().items() if value}
    for name in ("drive", "site_drive"):
        if one := groups.get(name) or groups.get(name + "_q"):
            return one, None
    if "me" in groups:
        return None, "me"
    if user := groups.get("user") or groups.get("user_q"):
        return None, f"user:{user}"
    return None, f"site:{groups.get('owner') or groups.get('owner_q')}"
