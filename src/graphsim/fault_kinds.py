"""The table of fault kinds: where each strikes, what it does, and which options it takes.

The table of README.md is made of this one, and a test compares them.
"""

from __future__ import annotations

import msgspec


class FaultKind(msgspec.Struct, frozen=True):
    """One kind of scripted misbehaviour."""

    strikes: str
    """The requests on which it has an effect, in words."""
    does: str
    """What happens, as a sentence without its full stop."""
    options: tuple[str, ...] = ()
    """The fields of :class:`graphsim.faults.Fault` that it reads, beside those of every kind."""


_REFUSAL = ("status", "code", "inner", "message", "retry_after", "headers")
_ANY, _JSON = "any request", "any JSON answer of Graph"
_DELTA, _LISTS = "delta", "delta, children"
_DOWNLOAD, _NOTIFY = "download", "notify"

FAULT_KINDS: dict[str, FaultKind] = {
    # --- refusals and the wire ---
    "status": FaultKind(
        _ANY,
        "a refusal with any status, codes and headers; `retry_after` is any text, so that a date, "
        "`0`, `-1`, `999999` or `abc` can be said; on the login host `aadsts` picks the refusal",
        (*_REFUSAL, "aadsts"),
    ),
    "throttle": FaultKind(_ANY, "the same with 429 and `activityLimitReached`", _REFUSAL),
    "hang": FaultKind(_ANY, "no answer at all for `seconds`, then the right one", ("seconds",)),
    "truncate": FaultKind(
        _ANY, "the connection is closed in order after `after` bytes of the body", ("after",)
    ),
    "reset": FaultKind(_ANY, "the connection is reset (RST) after `after` bytes", ("after",)),
    "stall": FaultKind(
        _ANY, "silence for `seconds` after `after` bytes, then the rest", ("after", "seconds")
    ),
    "drip": FaultKind(
        _ANY, "the body comes in pieces of `size` bytes, `seconds` apart", ("size", "seconds")
    ),
    "no_length": FaultKind(_ANY, "the body is chunked, without Content-Length"),
    "gzip": FaultKind(
        _ANY,
        "the body is gzip'd whatever Accept-Encoding says; chunked, or with the encoded length "
        "with `with_length`",
        ("with_length",),
    ),
    # --- answers that are not what they should be ---
    "not_json": FaultKind(
        _JSON, "200 with the first half of the JSON, or with `extra`, as if complete", ("extra",)
    ),
    "html": FaultKind(_JSON, "200 with a sign-in page in HTML, or with `extra`", ("extra",)),
    "nested_json": FaultKind(_JSON, "200 with `size` bytes of nested JSON lists", ("size",)),
    "drop_fields": FaultKind(
        _LISTS,
        "the properties `fields` (dotted: `file.hashes`) are missing, from the items `only` names",
        ("fields", "only"),
    ),
    "set_fields": FaultKind(
        _LISTS,
        "properties have other values (dotted; `size = -5`, a date of year 1, unknown facets)",
        ("values", "only"),
    ),
    "churn": FaultKind(_LISTS, "items have another eTag and cTag each time", ("only",)),
    "cycle": FaultKind(_LISTS, "two folders of the page are each other's parent; one, its own"),
    # --- pages and links ---
    "gone": FaultKind(
        _DELTA,
        "410 with `inner` code, and `Location` unless that is false",
        ("location", "inner", "code"),
    ),
    "empty_page": FaultKind(_DELTA, "an empty page whose nextLink leads to the page asked for"),
    "late_end": FaultKind(
        _DELTA,
        "the last page has a nextLink; `number` empty pages follow, and the last of them has the "
        "deltaLink; with `token=latest` too",
        ("number",),
    ),
    "loop": FaultKind(
        _DELTA,
        "the nextLink is that of the page itself; with `fresh` its token is new each time",
        ("fresh",),
    ),
    "foreign_link": FaultKind(_LISTS, "the link leads to another `host`", ("host",)),
    "no_link": FaultKind(_DELTA, "the page has neither nextLink nor deltaLink"),
    "both_links": FaultKind(_DELTA, "the page has nextLink and deltaLink, both with its token"),
    "page_size": FaultKind(
        _LISTS, "pages of `least` to `most` items, whatever `$top` says", ("least", "most")
    ),
    "duplicate": FaultKind(_LISTS, "each item of the page comes twice"),
    "shuffle": FaultKind(_LISTS, "the page is in reverse order"),
    "swap": FaultKind(
        "children", "the page ends with the next one's first item: one twice, one not at all"
    ),
    # --- what a round of delta says ---
    "shuffle_round": FaultKind(_DELTA, "the round is in random order, the same for each seed"),
    "children_first": FaultKind(_DELTA, "the round is in reverse order, parents after children"),
    "omit_root": FaultKind(_DELTA, "the round has no root item"),
    "omit_parents": FaultKind(_DELTA, "the round has no unchanged parents, nor the root"),
    "lose_tombstones": FaultKind(
        _DELTA, "a `share` of the round's tombstones is never reported", ("share",)
    ),
    "stale_first": FaultKind(
        _DELTA, "a `share` of the round's items comes before it too, in an older state", ("share",)
    ),
    "repeat": FaultKind(
        _DELTA, "a `share` of the round's items comes again after it, unchanged", ("share",)
    ),
    "moving": FaultKind(
        _DELTA, "the last page shows what changed since the round began, and the next round again"
    ),
    # --- downloads ---
    "inline": FaultKind("content", "200 with the body at once, without a redirect"),
    "expired_url": FaultKind(_DOWNLOAD, "401 as for a URL that has expired"),
    "ignore_range": FaultKind(_DOWNLOAD, "200 with everything to a range"),
    "ignore_if_range": FaultKind(_DOWNLOAD, "206 although the file is another one by now"),
    "wrong_range": FaultKind(
        _DOWNLOAD, "206 with another part than asked for, and with its true Content-Range"
    ),
    "alter": FaultKind(
        _DOWNLOAD,
        "the bytes are not those of listed size and hash: the first `keep` only, `extra` after "
        "them; with `fresh` other ones at each request",
        ("keep", "extra", "fresh"),
    ),
    # --- notifications ---
    "drop_notification": FaultKind(_NOTIFY, "the notification is not sent, nor tried again"),
    "repeat_notification": FaultKind(_NOTIFY, "the notification is sent twice"),
}


def table() -> str:
    """Return the kinds as a Markdown table."""
    rows = ["| Kind | Strikes | What happens | Options |", "|---|---|---|---|"]
    for name, kind in FAULT_KINDS.items():
        options = ", ".join(f"`{one}`" for one in kind.options)
        rows.append(f"| `{name}` | {kind.strikes} | {kind.does} | {options} |")
    return "\n".join(rows)
