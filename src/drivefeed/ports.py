"""The doors to the outside. Stages and services know these protocols and nothing behind them.

Every implementation passes the contract suite of its port in ``tests/contracts``. Times are
milliseconds since the epoch unless a name says seconds. Adapters raise only the errors of
:mod:`drivefeed.domain.errors`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from tokenizers import Tokenizer

    from drivefeed.domain.budget import Lane
    from drivefeed.domain.reasons import Reason
    from drivefeed.domain.remote import DeltaPage, DriveRef, RemoteDrive, RemoteItem

# --- time, ids and checkpoints -----------------------------------------------------------------


class Clock(Protocol):
    """The only way to ask for the time, so that tests can turn it by hand."""

    def now(self) -> int:
        """Return milliseconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; a manual clock returns when it was turned far enough."""
        ...


class Ids(Protocol):
    """The only way to ask for fresh ids and randomness."""

    def new(self) -> str:
        """Return a fresh UUID in its 36-character form."""
        ...

    def fraction(self) -> float:
        """Return a random number in [0, 1), for jitter."""
        ...


class Checkpoint(Protocol):
    """A named place where a test may kill the process. Inert in production."""

    def __call__(self, name: str) -> None:
        """Pass the place ``name``."""
        ...


# --- the source --------------------------------------------------------------------------------


class Download(Protocol):
    """The content of one file while it streams."""

    size: int | None
    etag: str | None

    def chunks(self) -> AsyncIterator[bytes]:
        """Yield the bytes in order, in pieces of at most 1 MiB.

        A cut connection or an expired download URL is resumed by range inside, a bounded number
        of times; the consumer sees one unbroken stream or an error.

        Raises:
            Transient: the stream could not be completed.
        """
        ...


class Source(Protocol):
    """A cloud drive service (Microsoft Graph or a look-alike)."""

    def at(self, lane: Lane) -> Source:
        """Return the same source for requests of another urgency, where requests are rationed."""
        ...

    async def delta(self, drive: DriveRef, link: str | None) -> DeltaPage:
        """Fetch one page of changes; ``link`` is a stored link, or None to enumerate everything.

        Raises:
            CursorExpired: the link is no longer valid.
            Throttled, Transient, PartDown, NeedsAttention: as their docstrings say.
        """
        ...

    async def item(self, drive: DriveRef, item_id: str) -> RemoteItem:
        """Fetch one item by id.

        Raises:
            NotFound: there is no such item (any more).
        """
        ...

    async def drive(self, drive: DriveRef) -> RemoteDrive:
        """Describe a drive and its root."""
        ...

    async def item_by_path(self, drive: DriveRef, path: str) -> RemoteItem:
        """Resolve a folder path relative to the drive's root, once, to an item.

        Raises:
            NotFound: there is nothing at that path.
        """
        ...

    async def is_labelled(self, drive: DriveRef, item_id: str) -> bool:
        """Tell whether a file has a sensitivity label, or is protected by one that is not shown.

        Raises:
            NotFound: the item is gone.
            NeedsAttention: it is not told to this account.
        """
        ...

    async def has_own_permissions(self, drive: DriveRef, item_id: str) -> bool:
        """Tell whether a file has other permissions than those that it inherits.

        Raises:
            NotFound: the item is gone.
            NeedsAttention: it is not told to this account.
        """
        ...

    def download(self, drive: DriveRef, item_id: str) -> AbstractAsyncContextManager[Download]:
        """Open the content of a file, from its first byte.

        Raises (on entering):
            NotFound: the item is gone.
            Permanent: it may not be downloaded (malware, forbidden).
        """
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


@dataclass(frozen=True, slots=True)
class SubscriptionWish:
    """What a source is asked to tell of, and where.

    Attributes:
        url: where changes are told; ``lifecycle_url``, where the subscription's own fate is.
        secret: the word that the source shows with each call; at most 128 characters.
        expires_at: until when.
    """

    url: str
    lifecycle_url: str
    secret: str = field(repr=False)
    expires_at: int


@dataclass(frozen=True, slots=True)
class Granted:
    """A subscription as the source granted it: its id there, and until when."""

    remote_id: str
    expires_at: int


class ChangeNotifications(Protocol):
    """A source that can say when something changed. What changed is always asked of ``delta``.

    All methods raise as :meth:`Source.delta` does.
    """

    async def subscribe(self, drive: DriveRef, wish: SubscriptionWish) -> Granted:
        """Ask to be told; the source calls ``wish.url`` before it answers."""
        ...

    async def renew(self, drive: DriveRef, remote_id: str, *, expires_at: int) -> Granted:
        """Prolong a subscription.

        Raises:
            NotFound: the source does not know it (any more).
        """
        ...

    async def unsubscribe(self, drive: DriveRef, remote_id: str) -> None:
        """End a subscription; one that is gone is ended."""
        ...

    async def subscribed(self, drive: DriveRef, address: str) -> list[str]:
        """Return the source's ids of the drive's subscriptions whose URL begins with an address."""
        ...


# --- the object store --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object in the store. ``sha256`` (hex) is None where only a listing was asked."""

    key: str
    size: int
    sha256: str | None = None
    modified_at: int | None = None


class ObjectStore(Protocol):
    """Keeps the bytes of documents under keys that name org, document, import and round."""

    async def put(
        self, key: str, chunks: AsyncIterator[bytes], *, content_type: str, size: int | None
    ) -> StoredObject:
        """Store a new object from a stream, in bounded memory, and return size and SHA-256.

        The object is there completely or not at all. ``size`` is a hint for part sizes.

        Raises:
            AlreadyExists: there is an object under the key (whatever its content).
            PartDown: the store does not answer, is full or refuses us.
        """
        ...

    async def stat(self, key: str) -> StoredObject | None:
        """Return the object's size, or None if there is none."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the object's bytes in pieces of at most 1 MiB.

        Raises:
            NotFound: there is no such object.
        """
        ...

    async def fetch(self, key: str, path: Path) -> None:
        """Copy the object into the local file ``path``.

        Raises:
            NotFound: there is no such object.
        """
        ...

    async def delete(self, key: str) -> bool:
        """Delete the object; False if it was not there."""
        ...

    def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """Yield all objects whose key starts with ``prefix``, in key order."""
        ...

    async def address(self, key: str, *, seconds: int) -> str | None:
        """Return a URL that gives the object to anybody for some time, or None without any.

        Whether the object is there is not looked up.
        """
        ...

    async def abort_uploads(self, *, before: int) -> int:
        """Abort unfinished uploads begun before that time; return how many."""
        ...

    async def unfinished_uploads(self, *, before: int) -> int:
        """Return how many unfinished uploads were begun before that time; nothing changes."""
        ...

    async def check(self) -> None:
        """Write, conditionally write, read and delete a small object.

        Raises:
            PartDown: with a sentence that says which step failed and why.
        """
        ...

    async def aclose(self) -> None:
        """Release connections and threads."""
        ...


# --- the queue ---------------------------------------------------------------------------------


class Stage(StrEnum):
    """One queue each; the name of a stage is the name of its queue."""

    DISCOVER = "discover"
    ADMIT = "admit"
    TRANSFER = "transfer"
    SUBMIT = "submit"
    POLL = "poll"
    PUBLISH = "publish"
    WITHDRAW = "withdraw"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A delivery to make. The payload holds ids and a schema version, nothing else.

    Attributes:
        job_id: ``stage-subject-number``; Node refuses ids with a colon.
        delay_ms: how long it waits in Redis as a delayed job; 0 for at once.
        attempts: attempts BullMQ may use for faults of the file.
        priority: 0 is the most urgent.
    """

    stage: Stage
    job_id: str
    payload: Mapping[str, str | int]
    delay_ms: int = 0
    attempts: int = 3
    priority: int = 0


class Delivery(Protocol):
    """One job as a worker received it."""

    stage: Stage
    job_id: str
    payload: Mapping[str, Any]
    attempt: int
    """1 for the first attempt."""
    attempts: int
    """How many attempts it has in all."""

    async def progress(self, percent: int) -> None:
        """Show progress on the board; never raises."""
        ...


class DeliveryWorker(Protocol):
    """A consumer of one queue."""

    @property
    def running(self) -> bool:
        """False once the consumer's loop ended, for whatever reason."""
        ...

    async def run(self) -> None:
        """Consume until closed; returns then, and raises if the loop ended by itself."""
        ...

    async def close(self, *, grace: float) -> None:
        """Stop taking jobs, let the running ones finish for ``grace`` seconds, then let go."""
        ...


class Queue(Protocol):
    """Delivers jobs to workers; disposable, the catalog remembers."""

    async def add(self, jobs: Sequence[JobSpec]) -> None:
        """Add jobs in one round trip per stage; an id that is already there is left as it is.

        Raises:
            PartDown: the queue does not answer within five seconds; nothing may have been added.
        """
        ...

    async def pending(self, stage: Stage, job_ids: Sequence[str]) -> set[str]:
        """Return those of the ids whose jobs are still to be done or being done."""
        ...

    async def active(self, stage: Stage) -> set[str]:
        """Return the ids of the jobs that workers took and did not end, dead workers' too."""
        ...

    async def counts(self, stage: Stage) -> dict[str, int]:
        """Return how many jobs are waiting, active, delayed, completed, failed and paused."""
        ...

    async def generation(self) -> str | None:
        """Return the sentinel's value, or None where Redis was emptied since it was set."""
        ...

    async def clear(self) -> None:
        """Remove every job and everything else of ours, the sentinel too; for nobody else.

        Raises:
            PartDown: the queue does not answer.
        """
        ...

    async def set_generation(self, value: str) -> None:
        """Set the sentinel that tells when Redis was emptied."""
        ...

    def worker(
        self, stage: Stage, run: Callable[[Delivery], Awaitable[Any]], *, concurrency: int
    ) -> DeliveryWorker:
        """Make a consumer of one queue; ``run``'s return value is kept on the job."""
        ...

    async def check(self) -> None:
        """Check that the queue answers.

        Raises:
            PartDown: with a sentence that says what is wrong.
        """
        ...

    async def aclose(self) -> None:
        """Close connections within a few seconds, whatever the state of Redis."""
        ...


# --- ingestion backends ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submission:
    """What we hand to an ingestion backend.

    Attributes:
        key: the idempotency key, ``import_id:round``.
        seq: rises whenever the document's wanted version changes; a backend never publishes a
            lower one over a higher one.
        object_key: where the bytes are in the object store.
        folders: ids of the connection roots and ancestor folders the document lies in.
    """

    key: str
    org_id: str
    document_id: str
    import_id: str
    round: int
    seq: int
    object_key: str
    size: int
    name: str
    media_type: str | None
    source: str = "drive"
    folders: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


class BackendState(StrEnum):
    """Where a backend job stands."""

    WORKING = "working"
    DONE = "done"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BackendStatus:
    """A backend's answer to a poll.

    Attributes:
        progress: percent.
        pages, chunks: set when it is done.
        again_after_ms: when to ask again, where the backend knows better than we do.
        live: whether what the job brought in is shown now. A job that ends when a higher seq of
            its document was submitted leaves it hidden until it is told otherwise.
    """

    state: BackendState
    progress: int = 0
    again_after_ms: int | None = None
    pages: int | None = None
    chunks: int | None = None
    reason: Reason | None = None
    detail: str = ""
    live: bool = True


class IngestionBackend(Protocol):
    """Makes documents searchable. Ours is one; any team can put theirs behind the contract."""

    @property
    def trouble(self) -> str:
        """What it suffers from, where it has a breaker of its own that is open; else empty."""
        ...

    async def look_again(self) -> None:
        """See whether one that is down is well again, where nothing else would ask it."""
        ...

    async def submit(self, submission: Submission) -> str:
        """Submit and return the backend's job id; the same key gives the same job.

        Raises:
            Permanent: the backend refuses the file at the door.
            Throttled, Transient, PartDown: as their docstrings say.
        """
        ...

    async def status(self, job_id: str) -> BackendStatus:
        """Ask once how a job stands; an unknown id gives ``UNKNOWN``."""
        ...

    async def find(self, key: str) -> str | None:
        """Return the job id for an idempotency key, or None if the backend never saw it."""
        ...

    async def cancel(self, job_id: str) -> bool:
        """Try to cancel; True if the job will not finish and nothing of it will be published.

        False for a job that goes on, and for one that is done already.
        """
        ...

    async def remove(self, *, document_id: str, import_id: str, round_: int) -> None:
        """Remove everything of one round of an import; fine if there is nothing."""
        ...

    async def set_live(self, *, document_id: str, import_id: str, round_: int, live: bool) -> None:
        """Show or hide what one round of an import brought into the index."""
        ...

    async def set_folders(self, *, document_id: str, name: str, folders: tuple[str, ...]) -> None:
        """Record where the document lies now and what it is called; no content is read again."""
        ...

    async def check(self) -> None:
        """Check that the backend answers.

        Raises:
            PartDown: with a sentence that says what is wrong.
        """
        ...

    async def aclose(self) -> None:
        """Release connections, threads and child processes."""
        ...


class IndexJobState(StrEnum):
    """Where a job of the embedded backend stands."""

    QUEUED = "queued"
    DONE = "done"
    REFUSED = "refused"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class IndexJob:
    """A job of the embedded backend, as it is remembered.

    Attributes:
        read_at_start: the last start at which its file was read without harm, as far as that was
            recorded; 0 before.
    """

    job_id: str
    submission: Submission
    state: IndexJobState
    progress: int = 0
    pages: int | None = None
    chunks: int | None = None
    reason: Reason | None = None
    detail: str = ""
    shown: bool = True
    read_at_start: int = 0


class IndexJobs(Protocol):
    """Remembers the embedded backend's jobs across restarts."""

    async def create(self, submission: Submission) -> IndexJob:
        """Remember a job and make its ``index`` stage due; the same key gives the same job."""
        ...

    async def get(self, job_id: str) -> IndexJob | None:
        """Return a job, or None."""
        ...

    async def find(self, key: str) -> IndexJob | None:
        """Return the job of an idempotency key, or None."""
        ...

    async def set_progress(self, job_id: str, percent: int) -> None:
        """Record progress; ignored unless the job is queued, and had come less far."""
        ...

    async def note_read(self, job_id: str, starts: int) -> None:
        """Record that the file was read without harm at the start of that number."""
        ...

    async def is_overtaken(self, job: IndexJob) -> bool:
        """Tell whether a higher seq of the job's document was submitted."""
        ...

    async def set_shown(self, key: str, *, shown: bool) -> None:
        """Record whether what the job of a key brought in is shown; fine if there is none."""
        ...

    async def finish(
        self,
        job_id: str,
        state: IndexJobState,
        *,
        pages: int | None = None,
        chunks: int | None = None,
        reason: Reason | None = None,
        detail: str = "",
        shown: bool = True,
    ) -> bool:
        """End a queued job and make the poll of its import due now; False if it had ended."""
        ...


# --- the vector index --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """One chunk in the index. ``point_id`` is UUIDv5(import, round, chunk)."""

    point_id: str
    vector: Sequence[float]
    text: str
    org_id: str
    document_id: str
    import_id: str
    round: int
    seq: int
    chunk: int
    page: int
    name: str
    media_type: str
    folders: tuple[str, ...]
    live: bool


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """Which points may be found. ``org_id`` always comes from the credential."""

    org_id: str
    live: bool | None = True
    folders: tuple[str, ...] = ()
    media_types: tuple[str, ...] = ()
    document_id: str | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A found point; a higher score is a better hit."""

    score: float
    point: Point


RoundRow = tuple[str, int, bool, int]
"""Import id, round, whether it is live, and how many points there are."""


class VectorIndex(Protocol):
    """Dense and sparse vectors of chunks, with payloads as in docs/index-contract.md."""

    async def upsert(self, points: Sequence[Point]) -> None:
        """Write points; a point with the same id is replaced. Durable on return."""
        ...

    async def search(
        self, *, vector: Sequence[float], text: str, where: SearchFilter, limit: int
    ) -> list[SearchHit]:
        """Find the best points by dense and BM25 similarity, fused by reciprocal rank."""
        ...

    async def set_live(self, *, import_id: str, round_: int, live: bool) -> int:
        """Set the live flag on all points of a round; return how many there are."""
        ...

    async def set_folders(self, *, document_id: str, name: str, folders: tuple[str, ...]) -> int:
        """Update name and folders on all points of a document; no vector is touched."""
        ...

    async def remove(self, *, import_id: str, round_: int) -> int:
        """Remove all points of a round; return how many there were."""
        ...

    async def remove_of(self, *, org_id: str) -> int:
        """Remove all points of an organization; return how many there were."""
        ...

    async def count(self, *, import_id: str | None = None, round_: int | None = None) -> int:
        """Count points exactly, of one round or of the whole collection."""
        ...

    def rounds(self, *, org_id: str | None = None) -> AsyncIterator[RoundRow]:
        """Yield what there is of each round in the index, or of those of one organization.

        Points that are none of ours are told as round 0 of an import with an empty id.
        """
        ...

    async def points_of(self, *, import_id: str, round_: int) -> list[str]:
        """Return the ids of all points of a round; of those that are none of ours with ("", 0)."""
        ...

    async def remove_points(self, ids: Sequence[str]) -> int:
        """Remove points by their ids; return how many there were."""
        ...

    async def check(self) -> None:
        """Check that the index answers and fits the embedding model.

        Raises:
            PartDown: with a sentence that says what is wrong.
        """
        ...

    async def drop(self) -> None:
        """Close, and erase everything; fine if there is nothing."""
        ...

    async def aclose(self) -> None:
        """Flush and close."""
        ...


# --- embedding ---------------------------------------------------------------------------------


class Embedder(Protocol):
    """Turns text into vectors of length one, so that their dot product is the cosine.

    Vectors of two embedders that differ in provider, name or dimension must never meet in one
    index.
    """

    @property
    def provider(self) -> str:
        """Return who runs the model: ``local``, ``multilingual``, ``openai`` or ``ollama``."""
        ...

    @property
    def name(self) -> str:
        """Return the model's name."""
        ...

    @property
    def dimension(self) -> int:
        """Return how many numbers a vector has."""
        ...

    @property
    def max_tokens(self) -> int:
        """Return the most tokens of a text that is embedded whole, marks and prefix not counted."""
        ...

    @property
    def loaded(self) -> bool:
        """Whether a model is in the memory of this process."""
        ...

    def tokenizer(self) -> Tokenizer | Callable[[str], int]:
        """Return what counts the tokens of a text, for chunking.

        The model's own tokenizer, or a function that never counts too few where it can help it.
        It may load files and takes time: call it in a thread.
        """
        ...

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts to be found, one vector for each, in order.

        Raises:
            Throttled, Transient, PartDown, NeedsAttention: as their docstrings say.
        """
        ...

    async def embed_query(self, text: str) -> list[float]:
        """Embed what somebody searches for; it does not wait for documents under way.

        Raises:
            Throttled, Transient, PartDown, NeedsAttention: as their docstrings say.
        """
        ...

    async def check(self) -> None:
        """Embed a word.

        Raises:
            PartDown, NeedsAttention: with a sentence that says what is wrong.
        """
        ...

    async def aclose(self) -> None:
        """Let models, threads and connections go."""
        ...
