"""A message as text, as HTML, as a card of Teams and as JSON. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from drivefeed.domain.notices import Happening, Severity, first_sentence

if TYPE_CHECKING:
    from drivefeed.domain.notices import Message, Told

_MOST_IN_CARD = 10
"""Teams takes cards of at most 28 KB."""
_LONGEST_TITLE = 160
_LONGEST_TEXT = 30_000
"""Slack cuts texts at 40,000 characters."""
_COLOURS = {Severity.URGENT: "Attention", Severity.WARNING: "Warning", Severity.NOTICE: "Accent"}
_HTML_COLOURS = {Severity.URGENT: "#b3261e", Severity.WARNING: "#9a6700", Severity.NOTICE: "#555"}
_GREEN = "#1a7f37"


def title_of(message: Message) -> str:
    """Return the title, for a subject line: one line, and not long."""
    title = " ".join(message.title.split())
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"


def heading_of(one: Told) -> str:
    """Return a notice's first line: how it stands, and what it is about."""
    word = "over again" if one.happening is Happening.OVER else str(one.severity)
    where = f" ({one.org})" if one.org else ""
    return f"[{word}] {one.subject}{where}"


def words_of(one: Told) -> str:
    """Return what is told of a notice, as sentences."""
    if one.happening is Happening.OVER and one.over_at is not None:
        return (
            f"This is over since {instant_of(one.over_at)}: {first_sentence(one.words)}. "
            f"It was first seen {instant_of(one.first_at)}."
        )
    return one.words


def instant_of(at: int) -> str:
    """Return an instant as people of all zones can read it."""
    return datetime.fromtimestamp(at / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M UTC")


def plain_text(message: Message) -> str:
    """Return the message as plain text."""
    blocks = []
    for one in message.told:
        lines = [heading_of(one), words_of(one)]
        if one.happening is Happening.OPENED:
            lines += [f"What to do: {one.remedy}"] if one.remedy else []
            lines += [f"Run: {one.command}"] if one.command else []
            lines.append(f"First seen {instant_of(one.first_at)}.")
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, "All notices: drivefeed notices"]) + "\n"


def html_text(message: Message) -> str:
    """Return the message as a simple page for mail programs: no style sheet, no pictures."""
    blocks = []
    for one in message.told:
        colour = _GREEN if one.happening is Happening.OVER else _HTML_COLOURS[one.severity]
        heading = f'<b style="color:{colour}">{escape(heading_of(one))}</b>'
        lines = [f"<p>{heading}<br>{escape(words_of(one))}</p>"]
        if one.happening is Happening.OPENED:
            lines += [f"<p>What to do: {escape(one.remedy)}</p>"] if one.remedy else []
            lines += [f"<pre>{escape(one.command)}</pre>"] if one.command else []
            lines.append(f"<p><small>First seen {instant_of(one.first_at)}.</small></p>")
        blocks.append("\n".join(lines))
    body = "\n<hr>\n".join(blocks)
    return (
        f"<!DOCTYPE html>\n<html><head><title>{escape(title_of(message))}</title></head>"
        f'<body style="font-family:sans-serif">\n{body}\n'
        "<hr>\n<p><small>All notices: <code>drivefeed notices</code></small></p></body></html>\n"
    )


def teams_card(message: Message) -> dict[str, Any]:
    """Return what a Workflows webhook of Teams takes: a message with one Adaptive Card."""
    body: list[dict[str, Any]] = [_block(title_of(message), weight="Bolder", size="Medium")]
    for one in message.told[:_MOST_IN_CARD]:
        over = one.happening is Happening.OVER
        colour = "Good" if over else _COLOURS[one.severity]
        body.append(_block(heading_of(one), weight="Bolder", color=colour, separator=True))
        body.append(_block(words_of(one)))
        if not over:
            body += [_block(f"What to do: {one.remedy}")] if one.remedy else []
            body += [_block(one.command, fontType="Monospace")] if one.command else []
    left = len(message.told) - _MOST_IN_CARD
    if left > 0:
        body.append(_block(f"And {left} more: drivefeed notices"))
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "msteams": {"width": "Full"},
        "body": body,
    }
    attachment = {
        "contentType": "application/vnd.microsoft.card.adaptive",
        "contentUrl": None,
        "content": card,
    }
    return {"type": "message", "attachments": [attachment]}


def _block(text: str, **more: Any) -> dict[str, Any]:
    # Teams reads Markdown in texts; a name must not become a link or a list.
    return {"type": "TextBlock", "text": _unmarked(text), "wrap": True, **more}


def _unmarked(text: str) -> str:
    return "".join(f"\\{sign}" if sign in "\\*_[]#`~" else sign for sign in text)


def slack_text(message: Message) -> dict[str, str]:
    """Return what Slack and those that speak like it take: ``{"text": …}``."""
    text = f"{title_of(message)}\n\n{plain_text(message)}"
    # The three signs that Slack wants escaped; with them, nobody is mentioned by a name.
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, entity)
    return {"text": text[:_LONGEST_TEXT]}


def json_document(message: Message) -> dict[str, Any]:
    """Return what a generic webhook takes; docs/operations.md describes it."""
    return {
        "schema": 1,
        "key": message.key,
        "at": message.at,
        "title": title_of(message),
        "urgent": message.is_urgent,
        "notices": [
            {
                "id": one.notice_id,
                "happening": one.happening,
                "kind": one.kind,
                "severity": one.severity,
                "org": one.org or None,
                "subject": one.subject,
                "reason": one.reason,
                "words": one.words,
                "remedy": one.remedy,
                "command": one.command,
                "count": one.count,
                "first_at": one.first_at,
                "last_at": one.last_at,
                "over_at": one.over_at,
            }
            for one in message.told
        ],
    }
