"""The nouns of drivefeed as plain values. Times are milliseconds since the epoch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from drivefeed.domain.lifecycle import State

if TYPE_CHECKING:
    from drivefeed.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class Live:
    """Which round of which import is searchable for a document."""

    import_id: str
    round: int


@dataclass(frozen=True, slots=True)
class Document:
    """A file as the organization knows it.

    Attributes:
        wanted: the import that should be searchable, or None.
        live: the round of the import that is searchable, or None.
        seq: rises whenever ``wanted`` changes.
        unwanted_reason: why nothing is wanted, while ``wanted`` is None.
        erase_at: when content that is hidden may be erased, while ``wanted`` is None.
        misplaced: the index still has an older name or older folders of it.
    """

    document_id: str
    org_id: str
    wanted: str | None = None
    live: Live | None = None
    seq: int = 0
    unwanted_reason: Reason | None = None
    erase_at: int | None = None
    misplaced: bool = False


@dataclass(frozen=True, slots=True)
class Import:
    """The journey of one version of a document.

    Attributes:
        round: how often it was admitted; effects carry (import, round) in their names.
        revision: rises with every change, for compare-and-swap.
        shown: the live flag that the index has for this round; None where that is not known,
            because there are no points yet, or because a change of it may be under way.
        attention: why it waits for a person.
        hold: why it waits for a condition.
        poll_count: polls since it was submitted, for the interval that backs off.
        quick_xor: base64 quickXorHash of this version, as it was listed when it was admitted.
        integrity: how the bytes that arrived compare with what was listed: ``verified``,
            ``no_listed_hash`` or ``server_modified``.
        backend: which ingestion backend this round was submitted to; None before that.
        misplaced: the file was renamed or moved after it may have been submitted, so the index
            may have an older place of this round.
    """

    import_id: str
    document_id: str
    org_id: str
    version_key: str
    state: State = State.DISCOVERED
    round: int = 1
    revision: int = 1
    reason: Reason | None = None
    shown: bool | None = None
    attention: Reason | None = None
    hold: Reason | None = None
    backend: str | None = None
    backend_job: str | None = None
    deadline_at: int | None = None
    poll_count: int = 0
    quick_xor: str | None = None
    misplaced: bool = False
    size: int | None = None
    sha256: str | None = None
    integrity: str | None = None
    pages: int | None = None
    chunks: int | None = None

    @property
    def as_live(self) -> Live:
        """This round, as a document's ``live`` would name it."""
        return Live(self.import_id, self.round)


@dataclass(frozen=True, slots=True)
class Policy:
    """What a connection wants of its folder. Globs are relative to the connected folder.

    Attributes:
        types: file name endings without the dot, lower-case; empty for all that the ingestion
            backend reads.
        max_bytes: larger files are skipped.
        modified_since: files modified before are skipped.
        modified_age_ms: the age that ``modified_since`` was counted back from, when it was set.
            It does not move with time: what is in stays in.
        grace_ms: how long removed content stays hidden before it is erased.
        on_delete: ``mirror`` removes what the source removed, ``keep`` keeps it.
        brake_count, brake_percent, brake_floor: a settling that removes more documents than
            ``brake_count``, or than ``brake_percent`` of the connection and at least
            ``brake_floor``, stops and asks.
        priority: ``high`` copies what a listing or a scan found before what others found.
        interval_ms: how often the source is asked for changes; None for the settings' pace.
        quiet_hours: a window of local time, ``22:00-06:00``, in which no transfer starts.
        time_zone: the zone that ``quiet_hours`` is in, by its name in the tz database.
        backend: which ingestion backend makes the files searchable.
        deadline_ms: how long that may take for one file; None for the settings' deadline.
        labelled: ``exclude`` asks for each file's sensitivity labels before it is copied, and
            leaves out those that have one.
        own_permissions: ``exclude`` asks for each file's permissions, and leaves out those that
            do not only inherit what their folder has.
    """

    subfolders: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    max_bytes: int = 4 * 1024**3
    modified_since: int | None = None
    modified_age_ms: int | None = None
    on_delete: str = "mirror"
    grace_ms: int = 7 * 24 * 3600 * 1000
    brake_count: int = 50
    brake_percent: int = 20
    brake_floor: int = 10
    priority: str = "normal"
    interval_ms: int | None = None
    quiet_hours: str = ""
    time_zone: str = "UTC"
    backend: str = "embedded"
    deadline_ms: int | None = None
    labelled: str = "include"
    own_permissions: str = "include"

    @property
    def scope(self) -> tuple[object, ...]:
        """The part of it that decides which files are admitted."""
        return (
            self.subfolders,
            self.include,
            self.exclude,
            self.types,
            self.max_bytes,
            self.modified_since,
            self.own_permissions,
        )


@dataclass(frozen=True, slots=True)
class Connection:
    """One folder of a drive that an organization wants in.

    Attributes:
        disconnected: whether it was stopped for good. What it brought stays as it was then; nothing
            is decided about it until the folder is connected again.
    """

    connection_id: str
    org_id: str
    drive_id: str
    root_item_id: str
    name: str
    policy: Policy = field(default_factory=Policy)
    paused: bool = False
    attention: Reason | None = None
    disconnected: bool = False


def with_state(import_: Import, state: State, **changes: object) -> Import:
    """Return the import in another state, one revision later."""
    return replace(import_, state=state, revision=import_.revision + 1, **changes)  # type: ignore[arg-type]
