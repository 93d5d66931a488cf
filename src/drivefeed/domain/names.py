"""Names that people give: to organizations, accounts, connections and keys."""

from __future__ import annotations

import re
from typing import Final

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.domain.visible import visible

LONGEST_NAME: Final = 120

_GUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DOMAIN: Final = re.compile(
    r"(?=.{4,253}\Z)([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]{1,62}"
)
_MANY_TENANTS: Final = frozenset({"common", "organizations", "consumers"})
_SECRETS: Final = re.compile(
    # What keys, links and sessions of ours begin with.
    r"\bd[fls]_[0-9a-f]{8}_"
    r"|-----BEGIN\b|\bPRIVATE KEY-----"
    # A JSON web token.
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}"
    # A client secret as Entra makes them: 40 characters, "8Q~" after the third.
    r"|(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"
)


def usable_name(name: str, *, longest: int = LONGEST_NAME) -> str:
    """Return a name without blanks around it.

    Raises:
        NeedsAttention: it is empty, too long, more than one line, or a secret.
    """
    name = name.strip()
    problem = name_problem(name, longest=longest)
    if problem is not None:
        raise NeedsAttention(problem, reason=Reason.MISCONFIGURED)
    return name


def is_tenant(text: str) -> bool:
    """Whether text can name a tenant: its id, a domain, or one of Entra's words for several."""
    return text in _MANY_TENANTS or is_guid(text) or _DOMAIN.fullmatch(text) is not None


def is_guid(text: str) -> bool:
    """Whether text is an id as Entra gives them to tenants and apps."""
    return _GUID.fullmatch(text) is not None


def is_like_secret(text: str) -> bool:
    """Whether text is shaped as a secret that was pasted into the wrong place."""
    return _SECRETS.search(text) is not None


def name_problem(name: str, *, longest: int = LONGEST_NAME) -> str | None:
    """Return what is wrong with a name, as a sentence; None where it can be used."""
    if is_like_secret(name):
        # Not shown: it would stand in logs and on screens.
        return (
            "What was given as a name looks like a secret. Names are shown and logged, so it was "
            "not taken; choose a name, and give the secret where it belongs."
        )
    if visible(name) != name:
        return f"The name '{visible(name)}' has characters that cannot be seen. Leave them out."
    if not any(one.isprintable() and not one.isspace() for one in name):
        return "A name has at least one character that can be seen."
    if len(name) > longest:
        return f"A name has at most {longest} characters; this one has {len(name)}."
    return None
