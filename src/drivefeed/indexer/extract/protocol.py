"""What the pool and its children say to each other: JSON frames behind a four-byte length.

A request is one frame. The answer is any number of frames with pages and then one that ends it, so
that neither side holds, or decodes at once, the whole text of a large document. Before them come
frames that ask for more time, one for each page that is read by OCR.
"""

from __future__ import annotations

import struct
from typing import Final

import msgspec

from drivefeed.domain.reasons import Reason  # noqa: TC001 - msgspec reads them
from drivefeed.indexer.model import Limits, Page  # noqa: TC001 - msgspec reads them

LENGTH: Final = struct.Struct(">I")


class Request(msgspec.Struct, frozen=True):
    """One file to read, or only to have its pages counted."""

    path: str
    name: str
    media_type: str | None
    limits: Limits
    only_count: bool = False


class Part(msgspec.Struct, frozen=True, tag=True):
    """The beginning of a long page; the first of the next `Pages` goes on from there."""

    text: str


class Pages(msgspec.Struct, frozen=True, tag=True):
    """The next pages."""

    pages: tuple[Page, ...]


class Longer(msgspec.Struct, frozen=True, tag=True):
    """A page is about to be read by OCR, which takes `ocr_page_seconds` of its own."""


class Done(msgspec.Struct, frozen=True, tag=True):
    """The file is read; `rss_bytes` tells how large the child has grown."""

    media_type: str
    page_count: int
    page_count_is_estimate: bool
    title: str | None
    language: str | None
    unread_pages: int
    rss_bytes: int


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The file can't be read. With `spent`, the child ends after this answer."""

    reason: Reason
    detail: str
    spent: bool


class Unreadable(msgspec.Struct, frozen=True, tag=True):
    """Its bytes or the library for them were not to be had, which says nothing about the file.

    `detail` is a sentence. With `spent`, the child ends after this answer.
    """

    detail: str
    spent: bool = False


Answer = Part | Pages | Longer | Done | Refused | Unreadable

encode = msgspec.json.Encoder().encode
decode_request = msgspec.json.Decoder(Request).decode
decode_answer = msgspec.json.Decoder(Answer).decode


def frame(body: bytes) -> bytes:
    """Put the length before a body."""
    return LENGTH.pack(len(body)) + body
