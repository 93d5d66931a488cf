"""Which files a connection admits, and why it skips the others. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import ItemKind

if TYPE_CHECKING:
    from drivefeed.domain.delta import TreeItem
    from drivefeed.domain.model import Policy

READABLE_TYPES = frozenset(
    {
        *("pdf", "docx", "docm", "pptx", "pptm", "xlsx", "xlsm", "xls", "csv", "tsv"),
        *("txt", "text", "log", "md", "markdown", "rst", "html", "htm", "xhtml", "rtf"),
        *("json", "xml", "yaml", "yml"),
    }
)
"""File name endings that the embedded ingestion backend reads."""

LABELLED_TYPES = frozenset(
    ("docx", "docm", "pptx", "pptm", "ppsx", "ppsm", "xlsx", "xlsm", "xlsb", "pdf")
)
"""Endings of files that can carry a sensitivity label in SharePoint and OneDrive.

Source: "Enable sensitivity labels for files in SharePoint and OneDrive" of Microsoft's; PDF where
the tenant has turned it on.
"""

_KINDS = {
    ItemKind.ROOT: Reason.NOT_A_FILE,
    ItemKind.FOLDER: Reason.NOT_A_FILE,
    ItemKind.PACKAGE: Reason.PACKAGE,
    ItemKind.VAULT: Reason.VAULT,
    ItemKind.SHORTCUT: Reason.SHORTCUT,
    ItemKind.UNKNOWN: Reason.UNKNOWN_KIND,
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file lies below a connected folder: names of folders, outermost first."""

    folders: tuple[str, ...]
    name: str

    @property
    def path(self) -> str:
        """The path relative to the connected folder, with ``/`` between names."""
        return "/".join((*self.folders, self.name)) if self.folders else self.name


def ending(name: str) -> str:
    """Return a file name's ending without the dot, lower-case, or an empty string."""
    stem, dot, last = name.rpartition(".")
    return last.lower() if dot and stem else ""


def skip_reason(item: TreeItem, place: Place, policy: Policy) -> Reason | None:
    """Return why a connection with this policy skips the item, or None if it admits it."""
    if item.kind is not ItemKind.FILE:
        return _KINDS[item.kind]
    if item.malware:
        return Reason.MALWARE
    reason = _path_reason(place, policy) or _content_reason(item, place.name, policy)
    if reason is None and policy.own_permissions == "exclude" and item.own_permissions:
        # The last of all: it is only asked for where nothing else keeps the file out.
        return Reason.OWN_PERMISSIONS
    return reason


def _path_reason(place: Place, policy: Policy) -> Reason | None:
    if place.folders and not policy.subfolders:
        return Reason.IN_SUBFOLDER
    if not (policy.include or policy.exclude):
        return None
    path = unicodedata.normalize("NFC", place.path)
    if policy.include and not _matches(policy.include, path):
        return Reason.NOT_INCLUDED_BY_FILTER
    return Reason.EXCLUDED_BY_FILTER if _matches(policy.exclude, path) else None


def _matches(patterns: tuple[str, ...], path: str) -> bool:
    for one in patterns:  # noqa: SIM110 - a generator for each file of a million takes longer
        if _glob(one).match(path):
            return True
    return False


def _content_reason(item: TreeItem, name: str, policy: Policy) -> Reason | None:
    kind = ending(name)
    if policy.types and kind not in policy.types:
        return Reason.TYPE_NOT_INCLUDED
    if not policy.types and kind not in READABLE_TYPES:
        return Reason.UNSUPPORTED_TYPE
    if item.size == 0:
        return Reason.EMPTY_FILE
    if item.size is not None and item.size > policy.max_bytes:
        return Reason.LARGER_THAN_LIMIT
    if (
        policy.modified_since is not None
        and item.modified_at is not None
        and item.modified_at < policy.modified_since
    ):
        return Reason.OLDER_THAN_LIMIT
    return None


_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@lru_cache(maxsize=1024)
def _glob(pattern: str) -> re.Pattern[str]:
    """Compile a glob: ``*`` within a name, ``**`` across folders; case does not matter.

    As in .gitignore, a pattern without a slash matches the file's name at any depth, and one
    that ends with a slash stands for all that lies in such a folder. Accents match however they
    are composed: macOS decomposes them.
    """
    folder = pattern.endswith("/")
    whole = unicodedata.normalize("NFC", pattern).rstrip("/")
    whole = whole.lstrip("/") if "/" in whole else f"**/{whole}"
    if folder:
        whole += "/**"
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", whole)
    body = "".join(_WILDCARDS.get(part) or re.escape(part) for part in parts)
    return re.compile(rf"{body}\Z", re.IGNORECASE | re.DOTALL)
