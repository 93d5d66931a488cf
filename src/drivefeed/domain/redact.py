"""Takes secrets out of text before it is kept where people read it: Redis, logs, the catalog.

Error messages of HTTP libraries quote URLs, and a pre-authenticated download URL *is* a
credential. It is better to redact too much than too little: only the value is replaced, so that
the text still says which parameter or header there was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK = "***"
"""What stands in place of a secret."""

_NAMES = (
    r"tempauth|sig|signature|token|access[_-]?token|refresh[_-]?token|id[_-]?token|"
    r"client[_-]?secret|client[_-]?assertion|secret|password|passwd|pwd|assertion|code|"
    r"code[_-]?verifier|api[_-]?key|apikey|authkey|session[_-]?token|secret[_-]?access[_-]?key|"
    r"aws[_-]?secret[_-]?access[_-]?key|requirepass|masterauth|"
    r"x-amz-signature|x-amz-credential|x-amz-security-token|awsaccesskeyid"
)

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # scheme://user:password@host, with or without a user
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s/:@?#'\"]*):[^\s/@'\"]+@"), rf"\1:{MASK}@"),
    # Authorization: Bearer …, in headers and dictionaries
    (
        re.compile(r"(?i)(authorization['\"]?\s*[:=]\s*b?['\"]?(?:[a-z]+\s+)?)[^\s'\",;]{6,}"),
        rf"\1{MASK}",
    ),
    # Bearer …, in prose; a plain word after it is prose too
    (
        re.compile(
            r"\b((?i:bearer|basic|sharedaccesssignature))\s+"
            r"(?=\S*[0-9A-Z+/=_~]|\S{16})[A-Za-z0-9+/=._~-]{6,}"
        ),
        rf"\1 {MASK}",
    ),
    # ?tempauth=… and &sig=…, also where the ampersand was escaped
    (re.compile(rf"(?i)([?&;](?:amp;)?(?:{_NAMES})=)[^\s&#'\"<>\\)]+"), rf"\1{MASK}"),
    # "client_secret": "…" in JSON and in Python's repr
    (
        re.compile(rf"(?i)(['\"](?:{_NAMES}|authorization)['\"]\s*[:=]\s*b?)(['\"])(?:(?!\2).)*\2"),
        rf"\1\2{MASK}\2",
    ),
    # client_secret=… and password: …, but not the words "code 404" or "token expired"
    (
        re.compile(
            rf"(?i)(?<![?&;\w-])((?:{_NAMES.replace('|code|', '|')})\s?=\s?)(['\"]?)[^\s,;&'\")]+\2"
        ),
        rf"\1\2{MASK}\2",
    ),
    # OneDrive's personal download hosts carry the credential in the path
    (
        re.compile(
            r"(?i)\b(https?://[a-z0-9.-]+\.(?:files\.1drv|1drv|livefilestore)\.com/)[^\s'\"<>)]+"
        ),
        rf"\1{MASK}",
    ),
    # Our own API keys, links and sessions; the beginning, by which people know them, may be read
    (re.compile(r"\b(d[fls]_[0-9a-f]{8}_)[A-Za-z0-9_-]{20,}"), rf"\1{MASK}"),
    # Private keys, also where the ends of lines were escaped
    (
        re.compile(
            r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?(?:-----END [A-Z ]*KEY-----|\Z)", re.DOTALL
        ),
        MASK,
    ),
    # Whoever knows the address of such a webhook may post there
    (
        re.compile(
            r"(?i)\b(https?://(?:hooks\.slack\.com|[a-z0-9.-]+\.(?:webhook\.office|logic\.azure)"
            r"\.com)/)[^\s'\"<>)]+"
        ),
        rf"\1{MASK}",
    ),
    # JSON web tokens, wherever they stand
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"), MASK),
)


_LEAST = 8
# Somebody's password may be "password"; masked by its value, the word would go out of every text.
_WORD = re.compile(r"[A-Z]?[a-z]{1,15}|[A-Z]{1,15}")
_MOST_HIDDEN = 1_000


class _Hidden:
    """Values that are masked by themselves; the oldest are let go when there are very many."""

    def __init__(self) -> None:
        self._values: dict[str, None] = {}
        self._pattern: re.Pattern[str] | None = None

    def add(self, values: Iterable[str]) -> None:
        """Mask these, and forget the order in which they were used."""
        for value in values:
            for one in {value, quote(value, safe="")}:
                self._values.pop(one, None)
                self._values[one] = None
        while len(self._values) > _MOST_HIDDEN:
            del self._values[next(iter(self._values))]
        self._pattern = None

    def without(self, text: str) -> str:
        """Return text with the values masked."""
        if not self._values:
            return text
        if self._pattern is None:
            # The longest first: one may be the beginning of another.
            longest_first = sorted(self._values, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        return self._pattern.sub(MASK, text)


_hidden = _Hidden()


def hide(*secrets: str) -> None:
    """Mask these values from now on wherever they stand, also where nothing says what they are.

    Whoever opens a secret says so here. Of several lines each is hidden by itself; what is shorter
    than eight characters, or a plain word, is not, because it would be found in the middle of
    everything.
    """
    lines = (line.strip() for secret in secrets for line in secret.splitlines())
    _hidden.add(line for line in lines if len(line) >= _LEAST and not _is_plain(line))


def _is_plain(line: str) -> bool:
    return line.startswith("-----") or _WORD.fullmatch(line) is not None


def redact(text: str) -> str:
    """Return ``text`` with passwords, tokens and signatures replaced by ``***``."""
    text = _hidden.without(text)
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
