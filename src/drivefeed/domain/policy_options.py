"""The options of a policy, each once: its name, what is allowed, how it is read and told. Pure.

The same table serves the command line, the settings, the file of connections, and the words in
which a change is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain import amounts
from drivefeed.domain import policy_values as values

if TYPE_CHECKING:
    from collections.abc import Callable

EMBEDDED: Final = "embedded"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a policy.

    Attributes:
        name: as it is written in files; on the command line with dashes.
        field: the field of :class:`~drivefeed.domain.model.Policy` that it sets.
        allowed: what it may be, as the end of a sentence.
        meaning: what it does, for ``--help`` and the docs.
        read: makes the field's value of what was written, or raises.
        show: makes words of the field's value.
        many: whether it is a list.
    """

    name: str
    field: str
    allowed: str
    meaning: str
    read: Callable[[Any], Any]
    show: Callable[[Any], str]
    many: bool = False


_GLOBS: Final = "globs such as *.pdf, /Contracts/** or drafts/"
OPTIONS: Final = (
    Option(
        "subfolders",
        "subfolders",
        allowed="yes or no",
        meaning="Whether folders below it count as well.",
        read=values.flag,
        show=lambda value: "yes" if value else "no",
    ),
    Option(
        "include",
        "include",
        allowed=_GLOBS,
        meaning="Globs; with any, only files that match one are wanted.",
        read=values.globs,
        show=values.list_words,
        many=True,
    ),
    Option(
        "exclude",
        "exclude",
        allowed=_GLOBS,
        meaning="Globs; files that match one are not wanted.",
        read=values.globs,
        show=values.list_words,
        many=True,
    ),
    Option(
        "types",
        "types",
        allowed="file name endings such as pdf or docx",
        meaning="Endings such as pdf; none for all that can be read.",
        read=values.types,
        show=values.list_words,
        many=True,
    ),
    Option(
        "max_size",
        "max_bytes",
        allowed="a size above zero such as 50 MB or 4 GiB",
        meaning="Larger files are skipped.",
        read=values.at_least(1, amounts.size_from),
        show=amounts.size_words,
    ),
    Option(
        "modified_since",
        "modified_since",
        allowed="a date such as 2024-01-31, an age such as 365 d, or none",
        meaning="Older files are skipped. An age is counted back from the day on which it is set.",
        read=values.or_none(values.since, (None, None)),
        show=values.since_words,
    ),
    Option(
        "on_delete",
        "on_delete",
        allowed="mirror or keep",
        meaning="mirror removes what the source removed; keep keeps it.",
        read=values.one_of("mirror", "keep"),
        show=str,
    ),
    Option(
        "grace",
        "grace_ms",
        allowed="a duration such as 7 d, 12 h or 0 s",
        meaning="How long removed content stays hidden before it is erased.",
        read=values.at_least(0, amounts.duration_from),
        show=values.duration_words,
    ),
    Option(
        "brake_count",
        "brake_count",
        allowed="a whole number, 0 or more",
        meaning="More removals at once than this stop and ask.",
        read=values.count(0),
        show=str,
    ),
    Option(
        "brake_percent",
        "brake_percent",
        allowed="a whole number from 0 to 100",
        meaning="A larger share at once stops and asks as well.",
        read=values.count(0, values.PERCENT),
        show=str,
    ),
    Option(
        "brake_floor",
        "brake_floor",
        allowed="a whole number, 1 or more",
        meaning="The fewest removals that a share can stop.",
        read=values.count(1),
        show=str,
    ),
    Option(
        "priority",
        "priority",
        allowed="high or normal",
        meaning="high copies what a listing finds before what normal connections find.",
        read=values.one_of("high", "normal"),
        show=str,
    ),
    Option(
        "interval",
        "interval_ms",
        allowed="a duration of at least 10 s, or none",
        meaning="How often its drive is asked for changes; none for the pace of the settings.",
        read=values.or_none(values.at_least(values.LEAST_INTERVAL_MS, amounts.duration_from)),
        show=values.duration_words,
    ),
    Option(
        "quiet_hours",
        "quiet_hours",
        allowed="a window such as 08:00-18:00 or 22:00-06:00, or none",
        meaning="No transfer starts in this window of local time.",
        read=values.or_none(values.window, ""),
        show=lambda value: value or "none",
    ),
    Option(
        "time_zone",
        "time_zone",
        allowed="a zone of the tz database such as Europe/Berlin or UTC",
        meaning="The zone of quiet_hours.",
        read=values.zone,
        show=str,
    ),
    Option(
        "backend",
        "backend",
        allowed="embedded, or a name of [backends] in the settings",
        meaning="Which ingestion backend makes the files searchable.",
        read=values.name,
        show=str,
    ),
    Option(
        "deadline",
        "deadline_ms",
        allowed="a duration of at least 1 min, or none",
        meaning="When a file that the backend has not finished is late; none for the settings'.",
        read=values.or_none(values.at_least(values.LEAST_DEADLINE_MS, amounts.duration_from)),
        show=values.duration_words,
    ),
    Option(
        "labelled",
        "labelled",
        allowed="include or exclude",
        meaning="exclude asks Microsoft for each file's sensitivity labels before it is copied, "
        "and leaves out those that have one.",
        read=values.one_of("include", "exclude"),
        show=str,
    ),
    Option(
        "own_permissions",
        "own_permissions",
        allowed="include or exclude",
        meaning="exclude asks Microsoft for each file's permissions, and leaves out those that do "
        "not only inherit their folder's.",
        read=values.one_of("include", "exclude"),
        show=str,
    ),
)
BY_NAME: Final = {one.name: one for one in OPTIONS}
