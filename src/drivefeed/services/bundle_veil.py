"""Leaves names out of what goes to others: files, people, folders, tenants, machines.

Secrets are left out always; names unless their owner says otherwise. What names look like, and
those that are known, are replaced by what they name; of the rest only words of ours stay. It is
better to leave out too much.
"""

from __future__ import annotations

import ipaddress
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from drivefeed.domain.redact import redact
from drivefeed.services.bundle_words import without_strange_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LEAST_NAME = 3
"""Shorter names would be found in the middle of everything; in quotes they are left out too."""
_ALWAYS: Final = frozenset({"machine"})
"""But for names of this kind: the log is full of them."""
_WORD: Final = re.compile(r"\w+")
_QUOTED: Final = re.compile(r"'([^'\n]{1,400})'(?!\w)|\"([^\"\n]{1,400})\"")
_COMMAND: Final = re.compile(r"drivefeed [a-z][a-z -]*(?:<[a-z]+>)?")
_MAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URL: Final = re.compile(r"\b([a-z][a-z0-9+.-]*)://([^\s/'\"<>?#]*)[^\s'\"<>]*", re.IGNORECASE)
_HOST: Final = re.compile(
    r"\b(?:[\w-]+\.)+(?:com|net|org|io|de|eu|uk|fr|nl|ch|at|it|es|pl|cn|us|jp|in|ms|co|dev|app|cloud"
    r"|local|internal|lan|corp|home|invalid|test|example|info|biz)\b(?!\.\w)",
    re.IGNORECASE,
)
_OPEN_HOSTS: Final = re.compile(
    r"(?:^|\.)(?:microsoftonline\.(?:com|us)|graph\.microsoft\.(?:com|us)|chinacloudapi\.cn"
    r"|amazonaws\.com)$|^localhost$|^127\.0\.0\.1$|^\[::1\]$"
)
_PATH: Final = re.compile(r"(?<![\w<])[^\s'\"<>(),;=]*[/\\][^\s'\"<>(),;]*[A-Za-z][^\s'\"<>(),;]*")
_FILE: Final = re.compile(
    r"[\w()\[\]&+,-][\w()\[\]&+, -]{0,120}\.(?:pdf|docx?|pptx?|xlsx?|csv|txt|md|html?|rtf|eml|msg"
    r"|png|jpe?g|tiff?|zip|one|vsdx?)\b",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(
    r"(?<![\w.])(?:\d{1,3}(?:\.\d{1,3}){3}(?![.\w])|[0-9a-f]*(?::[0-9a-f]*){2,}(?![:\w]))",
    re.IGNORECASE,
)
_GUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_OF_TENANT: Final = re.compile(
    rf"\b(tenant|directory|application|app|client|user|object)(\W{{1,12}}(?:id\W{{1,4}})?){_GUID}",
    re.IGNORECASE,
)
_SIGNED_IN: Final = re.compile(r"\b(sign(?:s|ed|ing) in as )(?!app |<)[^.,;:(\n]+")
"""The name of an app or a person may be made of plain words."""
_DRIVE: Final = re.compile(r"\bb![\w-]{16,}")
_ITEM: Final = re.compile(r"\b01[A-Z2-7]{32}\b")
_FRAME: Final = re.compile(r'^(\s*File ")([^"]+)(", line \d+.*)$')
_OURS: Final = re.compile(r".*((?:site-packages|src|lib/python[\d.]+)/)")


class Veil:
    """Takes names, or secrets alone, out of text.

    Args:
        names: the names that the catalog knows, by what they name.
        words: words in quotes that are ours, such as names of settings.
        with_names: leave names in.
    """

    def __init__(
        self,
        names: Mapping[str, Iterable[str]],
        *,
        words: Iterable[str] = (),
        with_names: bool = False,
    ) -> None:
        self.with_names = with_names
        self._words = frozenset(words)
        self._by_word: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for kind, known in names.items():
            for name in known:
                first = _WORD.search(name)
                is_long = len(name) >= _LEAST_NAME or kind in _ALWAYS
                if is_long and first and name not in self._words:
                    self._by_word[first[0].casefold()].append((name, kind))
        for group in self._by_word.values():
            group.sort(key=lambda pair: len(pair[0]), reverse=True)

    def text(self, text: str) -> str:
        """Return a sentence without secrets, and without names."""
        text = redact(text)
        if self.with_names:
            return text
        # Whole addresses first: a name in the middle of one would leave its rest behind.
        text = _MAIL.sub("<person>", text)
        text = _URL.sub(_url, text)
        text = _HOST.sub(_host, text)
        text = self._without_known(text)
        text = _QUOTED.sub(self._quoted, text)
        text = _SIGNED_IN.sub(r"\1<name>", text)
        text = _DRIVE.sub("<drive>", text)
        text = _ITEM.sub("<item>", text)
        text = _OF_TENANT.sub(r"\1\2<id>", text)
        text = _PATH.sub(self._path, text)
        text = _FILE.sub("<file>", text)
        text = _ADDRESS.sub(_address, text)
        return without_strange_words(text, self._words)

    def traceback(self, text: str) -> str:
        """Return a traceback whose frames and source lines stay, but for where they are kept."""
        if self.with_names:
            return redact(text)
        lines: list[str] = []
        is_source = False
        for line in redact(text).splitlines():
            frame = _FRAME.match(line)
            if frame is not None:
                place = _OURS.sub(r"…/\1", frame[2])
                lines.append(f"{frame[1]}{place if place != frame[2] else '…'}{frame[3]}")
            elif is_source and line.startswith("    "):
                lines.append(line)
            else:
                lines.append(self.text(line))
            is_source = frame is not None
        return "\n".join(lines)

    def _without_known(self, text: str) -> str:
        for word in {one.casefold() for one in _WORD.findall(text)}:
            for name, kind in self._by_word.get(word, ()):
                pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
                text = re.sub(pattern, f"<{kind}>", text, flags=re.IGNORECASE)
        return text

    def _quoted(self, found: re.Match[str]) -> str:
        inside = next(one for one in found.groups() if one is not None)
        quote = found[0][0]
        end = found[0][-1]
        if self._is_ours(inside) or inside.startswith("<"):
            return found[0]
        return f"{quote}…{end}"

    def _is_ours(self, words: str) -> bool:
        return words in self._words or _COMMAND.fullmatch(words) is not None

    def _path(self, found: re.Match[str]) -> str:
        return found[0] if found[0] in self._words or "://" in found[0] else "<path>"


def _url(found: re.Match[str]) -> str:
    host, _, port = found[2].rpartition("@")[2].partition(":")
    shown = host if _OPEN_HOSTS.search(host.casefold()) else "<host>"
    return f"{found[1]}://{shown}{f':{port}' if port else ''}"


def _address(found: re.Match[str]) -> str:
    try:
        address = ipaddress.ip_address(found[0])
    except ValueError:
        return found[0]
    return found[0] if address.is_loopback or address.is_unspecified else "<host>"


def _host(found: re.Match[str]) -> str:
    return found[0] if _OPEN_HOSTS.search(found[0].casefold()) else "<host>"
