"""Quirks: standing behaviours of one drive on which reports disagree."""

from __future__ import annotations

from typing import Literal

import msgspec


class Quirks(msgspec.Struct, forbid_unknown_fields=True):
    """Each drive may be set to either side; the defaults are what the documentation says."""

    descendant_tombstones: bool = True
    """Report the tombstones of what was below a removed folder."""
    tombstone_fields: Literal["profile", "id_only", "removed", "year_one"] = "profile"
    """``profile``: the documented fields of the drive type; ``id_only``: the id alone;
    ``removed``: ``@removed`` in place of ``deleted``; ``year_one``: every date is 0001-01-01."""
    link_form: Literal["query", "function", "root_function", "odd"] = "query"
    """``query``: ``root/delta?token=``; ``function``: ``drives('d')/items('i')/…delta(token='')``;
    ``root_function``: ``root/delta(token='')``; ``odd``: ``root/delta?(token='')``."""
    scoped_delta: Literal["work", "not_supported", "not_found", "not_found_yet"] = "work"
    """Delta below the root: ``work``, ``not_supported`` (501), ``not_found`` (404), or
    ``not_found_yet``: 404 for a minute after the folder was made."""
    restore: Literal["same", "new"] = "same"
    """What comes back to its old place with its old bytes gets the ``same`` id or a ``new`` one."""
    cutoff: bool = False
    """The drive was removed by its owner: every call answers 400, as reported by clients."""
    locked: bool = False
    """Its site is locked or archived: every call answers 423 ``notAllowed``."""
    delay: float = 0.0
    """Seconds until delta shows a change; the item itself shows it at once."""
    delay_loses: bool = False
    """A round that comes within the delay hands out a token beyond the change: it is lost."""
    hashes: Literal["listed", "empty", "absent", "after_download"] = "listed"
    """``empty``: ``hashes: {}``; ``absent``: no such property; ``after_download``: a hash appears,
    as a change without a new eTag, once a file was downloaded."""
    drive_id_form: Literal["plain", "upper", "mixed", "short"] = "plain"
    """How answers of a personal drive spell its id; ``short``: leading zeros are lost."""
    page_size: int | None = None
    """The most items on a page of this drive, in place of graphsim's own."""
    ignore_top: bool = False
    """``$top`` has no effect."""
    unescapes_twice: bool = False
    """Paths in addresses are percent-decoded twice."""
