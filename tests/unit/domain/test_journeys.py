"""One document, any order of events: edits, removals, returns, crashes, doubts, retries.

The catalog's transactions and the stages are played by the domain's own functions against a model
of source, store, index and backend. Contents are few, so that every kind of return occurs:
A → B → A, the same bytes under another key, delete and restore in and after the grace. Whatever
happened, once the world stands still and every doubt is cleared, the file is searchable as it is
at the source, charged once, and nothing else is left anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from drivefeed.catalog.documents import wanting, wanting_nothing
from drivefeed.domain.converge import apply, converge, is_in_use, may_stand_for, relieved
from drivefeed.domain.lifecycle import ENDED, Event, State
from drivefeed.domain.model import Document, Import, Live
from drivefeed.domain.reasons import Reason

GRACE = 1_000
BYTES = {"a": b"one", "b": b"two", "a2": b"one", "bad": b"three"}
"""Version keys and what they stand for. The backend refuses ``bad``."""

Round = tuple[str, int]


@dataclass
class Job:
    """A job of the backend."""

    round: Round
    state: str = "working"


@dataclass
class Run:
    """A stage under way: what it loaded, and what it will commit."""

    stage: str
    one: Import
    document: Document
    outcome: tuple[Event, dict[str, object], Reason | None, str | None] | str | None = None


class Journey(RuleBasedStateMachine):
    """The world around one document."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0
        self.source: str | None = None
        self.document = Document("d", "o")
        self.imports: dict[str, Import] = {}
        self.aliases: dict[str, str] = {}
        self.due: dict[str, tuple[str, int] | None] = {}
        self.running: dict[str, Run] = {}
        self.store: dict[Round, bytes] = {}
        self.points: dict[Round, bool] = {}
        self.jobs: dict[str, Job] = {}
        self.charged: list[tuple[str, bytes]] = []
        self.asked_at: dict[str, int] = {}

    # --- the catalog ---------------------------------------------------------------------------

    def commit(self, document: Document, *, moved: str | None = None) -> None:
        before = self.document
        if document.wanted != before.wanted:
            self.imports = {key: relieved(one) for key, one in self.imports.items()}
        outcome = converge(document, self.imports.values(), now=self.now)
        again = converge(outcome.document, outcome.imports.values(), now=self.now)
        assert again.moves == ()
        assert again.document == outcome.document
        if before.live and before.wanted and document.wanted:
            assert outcome.document.live is not None, "a gap between two versions"
        if outcome.document.live != before.live and outcome.document.live is not None:
            assert outcome.document.live.import_id == outcome.document.wanted
        self.document = outcome.document
        self.imports = dict(outcome.imports)
        changed = {move.after.import_id for move in outcome.moves} | {moved}
        for key, due in outcome.due.items():
            known = self.due.get(key)
            same = (known and known[0]) == (due.stage if due else None)
            if same and key not in changed and document.wanted == before.wanted:
                continue
            self.due[key] = (due.stage, due.at) if due else None

    def advance(
        self,
        key: str,
        event: Event,
        facts: dict[str, object],
        round_: int,
        *,
        reason: Reason | None = None,
        same_as: str | None = None,
    ) -> None:
        old = self.imports[key]
        if old.round != round_ or (event is Event.UNWANTED and is_in_use(self.document, old)):
            return
        new = apply(old, event, reason=reason)
        happened = new is not None and new.state is not old.state
        new = replace(new or old, **facts)  # type: ignore[arg-type]
        self.imports[key] = new
        document = self.document
        if same_as is not None and happened:
            assert self.imports[same_as].integrity == "verified", "it stands for other bytes"
            self.aliases[key] = same_as
            if document.wanted == key:
                document = wanting(document, same_as)
        if event is Event.SETTLED and happened:
            self.charge(new)
        self.commit(document, moved=key)

    def charge(self, one: Import) -> None:
        content = bytes.fromhex(one.sha256 or "")
        if all(key != one.import_id and held != content for key, held in self.charged):
            self.charged.append((one.import_id, content))

    # --- the source and what sync says ----------------------------------------------------------

    @initialize(key=st.sampled_from(["a", "b"]))
    def appears(self, key: str) -> None:
        self.source = key
        self.sync()

    @rule(key=st.sampled_from([*BYTES, None]), seen=st.booleans())
    def somebody_edits(self, key: str | None, *, seen: bool) -> None:
        self.source = key
        if seen:
            self.sync()

    @rule()
    def sync(self) -> None:
        if self.source is None:
            if self.document.seq:
                erase_at = self.now + GRACE
                self.commit(
                    wanting_nothing(
                        self.document, reason=Reason.REMOVED_AT_SOURCE, erase_at=erase_at
                    )
                )
            return
        key = self.source
        self.imports.setdefault(key, Import(key, "d", "o", key))
        alias = self.aliases.get(key)
        if alias is not None and self.imports[key].reason is Reason.SAME_BYTES:
            key = alias
        one = self.imports[key]
        if one.reason is Reason.GONE_AT_SOURCE:
            self.imports[key] = apply(one, Event.WANTED_AGAIN) or one
        self.commit(wanting(self.document, key))

    @rule(ms=st.sampled_from([1, GRACE // 2, GRACE + 1]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    # --- stages --------------------------------------------------------------------------------

    def startable(self) -> list[str]:
        return sorted(
            key
            for key, due in self.due.items()
            if due and due[1] <= self.now and key not in self.running
        )

    @precondition(lambda self: self.startable())
    @rule(data=st.data())
    def stage_starts(self, data: st.DataObject) -> None:
        self.start(data.draw(st.sampled_from(self.startable())))

    def start(self, key: str) -> None:
        due = self.due[key]
        assert due is not None
        self.running[key] = Run(due[0], self.imports[key], self.document)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def stage_acts(self, data: st.DataObject) -> None:
        self.act(data.draw(st.sampled_from(sorted(self.running))))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def stage_commits(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.act(key)
        self.finish(key)

    @precondition(lambda self: self.startable())
    @rule(steps=st.integers(1, 5), backend=st.booleans())
    def work_goes_on(self, steps: int, *, backend: bool) -> None:
        """A while in which nothing goes wrong, so that later stages are reached."""
        for _ in range(steps):
            for key in self.startable():
                self.start(key)
                self.act(key)
                self.finish(key)
            if backend:
                self.backend_works()

    @precondition(lambda self: self.running)
    @rule(data=st.data(), acted=st.booleans())
    def worker_is_killed(self, data: st.DataObject, *, acted: bool) -> None:
        """What it did outside stays done, what it would have committed is lost."""
        key = data.draw(st.sampled_from(sorted(self.running)))
        if acted:
            self.act(key)
        del self.running[key]

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def attempts_are_used_up(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        run = self.running.pop(key)
        due = self.due[key]
        if due is not None and due[0] == run.stage and self.imports[key].round == run.one.round:
            self.imports[key] = replace(self.imports[key], attention=Reason.ATTEMPTS_EXHAUSTED)
            self.asked_at[key] = self.document.seq
            self.due[key] = None

    @precondition(lambda self: any(one.attention for one in self.imports.values()))
    @rule()
    def somebody_retries(self) -> None:
        for key, one in self.imports.items():
            if one.attention is not None:
                self.clear(key)

    @precondition(lambda self: self.refused() is not None)
    @rule()
    def somebody_retries_a_refusal(self) -> None:
        self.clear(self.refused() or "")

    def refused(self) -> str | None:
        wanted = self.imports.get(self.document.wanted or "")
        return wanted.import_id if wanted and wanted.state is State.REJECTED else None

    def clear(self, key: str) -> None:
        one = replace(self.imports[key], attention=None, hold=None)
        if key == self.refused():
            one = apply(one, Event.UNWANTED, reason=one.reason) or one
        if one.state is State.SUBMITTED:
            one = replace(one, backend_job=None)
        self.imports[key] = one
        self.commit(self.document, moved=key)

    def act(self, key: str) -> None:
        """Do what the stage does outside, and prepare what it will commit."""
        run = self.running[key]
        if run.outcome is None:
            run.outcome = getattr(self, run.stage)(run) or "nothing"

    def finish(self, key: str) -> None:
        run = self.running.pop(key)
        if isinstance(run.outcome, tuple):
            event, facts, reason, same_as = run.outcome
            self.advance(key, event, facts, run.one.round, reason=reason, same_as=same_as)

    def transfer(self, run: Run) -> object:
        if run.one.state is not State.DISCOVERED:
            return None
        name = (run.one.import_id, run.one.round)
        if name not in self.store:
            if self.source is None:
                return Event.REFUSED, {}, Reason.GONE_AT_SOURCE, None
            self.store[name] = BYTES[self.source]
        content = self.store[name]
        is_listed = content == BYTES[run.one.import_id]
        facts: dict[str, object] = {
            "sha256": content.hex(),
            "integrity": "verified" if is_listed else "server_modified",
        }
        for other in self.imports.values():
            if (
                other.import_id != run.one.import_id
                and other.sha256 == content.hex()
                and may_stand_for(other)
                and is_listed
            ):
                return Event.SAME_BYTES, facts, Reason.SAME_BYTES, other.import_id
        return Event.STORED, facts, None, None

    def submit(self, run: Run) -> object:
        one = run.one
        name = f"{one.import_id}:{one.round}"
        if one.state is State.STORED:
            # The intent is a commit of its own, before the call.
            self.advance(one.import_id, Event.SUBMITTING, {}, one.round)
            one = self.imports[one.import_id]
        if one.state is not State.SUBMITTED or one.round != run.one.round:
            return None
        is_wanted = run.document.wanted == one.import_id
        if name not in self.jobs and not is_wanted:
            return Event.CANCELLED, {}, Reason.SUPERSEDED, None
        assert (one.import_id, one.round) in self.store, "submitted without its bytes"
        self.jobs.setdefault(name, Job((one.import_id, one.round)))
        return Event.ACCEPTED, {"backend_job": name}, None, None

    def poll(self, run: Run) -> object:
        one = run.one
        if one.state is not State.SUBMITTED or one.backend_job is None:
            return None
        job = self.jobs.get(one.backend_job)
        if job is None:
            return Event.ACCEPTED, {"backend_job": None}, None, None
        if job.state == "working" and run.document.wanted != one.import_id:
            job.state = "cancelled"
        reason = run.document.unwanted_reason or Reason.SUPERSEDED
        return {
            "working": None,
            "done": (Event.SETTLED, {"shown": True, "pages": 1}, None, None),
            "refused": (Event.REFUSED, {}, Reason.CORRUPT, None),
            "cancelled": (Event.CANCELLED, {}, reason, None),
        }[job.state]

    def publish(self, run: Run) -> object:
        if run.one.state is not State.SETTLED:
            return None
        name = (run.one.import_id, run.one.round)
        is_live = run.document.live == run.one.as_live
        if name in self.points:
            self.points[name] = is_live
        return Event.PUBLISHED, {"shown": is_live}, None, None

    def withdraw(self, run: Run) -> object:
        one = run.one
        if one.state is State.SETTLED:
            document = run.document
            if document.wanted == one.import_id or document.live == one.as_live:
                return None
            self.advance(
                one.import_id, Event.UNWANTED, {}, one.round, reason=document.unwanted_reason
            )
            one = self.imports[one.import_id]
        if one.state is not State.WITHDRAWING or one.round != run.one.round:
            return None
        name = (one.import_id, one.round)
        job = self.jobs.get(f"{one.import_id}:{one.round}")
        if job is not None and job.state == "working":
            job.state = "cancelled"
        self.points.pop(name, None)
        self.store.pop(name, None)
        return Event.REMOVED, {}, one.reason, None

    # --- the backend ---------------------------------------------------------------------------

    @precondition(lambda self: any(job.state == "working" for job in self.jobs.values()))
    @rule()
    def backend_works(self) -> None:
        for job in self.jobs.values():
            if job.state != "working":
                continue
            if job.round[0] == "bad" and self.store[job.round] == BYTES["bad"]:
                job.state = "refused"
                continue
            self.points[job.round] = True
            job.state = "done"

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def backend_forgets(self, data: st.DataObject) -> None:
        """It lost a job it was working on; what was done stays in the index."""
        name = data.draw(st.sampled_from(sorted(self.jobs)))
        if self.jobs[name].state == "working":
            del self.jobs[name]

    # --- what must hold ------------------------------------------------------------------------

    @invariant()
    def what_is_live_is_settled_and_there(self) -> None:
        live = self.document.live
        if live is None:
            return
        one = self.imports[live.import_id]
        assert (one.state, one.round) == (State.SETTLED, live.round)
        assert (live.import_id, live.round) in self.points, "searchable without points"
        assert (live.import_id, live.round) in self.store, "searchable without its bytes"

    @invariant()
    def no_work_is_lost(self) -> None:
        for key, one in self.imports.items():
            if one.attention is not None:
                assert self.asked_at[key] == self.document.seq, "it asks for an older mind"
            if one.state in ENDED or one.attention is not None or key in self.running:
                continue
            due = self.due.get(key)
            if one.state is not State.SETTLED:
                assert due is not None, f"{key} is {one.state} and nothing is due"
            elif due is None:
                assert one.shown is True
                assert self.document.live == one.as_live
            elif due[0] == "withdraw" and due[1] > self.now:
                assert one.shown is False, "removed, and not hidden"

    @invariant()
    def nothing_is_charged_twice(self) -> None:
        assert len({key for key, _ in self.charged}) == len(self.charged)
        assert len({content for _, content in self.charged}) == len(self.charged)

    def teardown(self) -> None:
        self.come_to_rest()
        live = self.document.live
        kept: set[Round] = set()
        if self.source is None:
            assert live is None
        else:
            wanted = self.imports[self.document.wanted or ""]
            if wanted.state is State.REJECTED:
                kept = {(wanted.import_id, wanted.round)}
                if live is not None:
                    kept.add((live.import_id, live.round))
            else:
                assert live == Live(wanted.import_id, wanted.round)
                kept = {(wanted.import_id, wanted.round)}
                if wanted.integrity == "verified":
                    assert self.store[(wanted.import_id, wanted.round)] == BYTES[self.source]
            if live is not None:
                assert any(
                    held == self.store[(live.import_id, live.round)] or key == live.import_id
                    for key, held in self.charged
                ), "searchable and never charged"
        assert set(self.store) <= kept, "objects of ended rounds are left"
        assert {name for name, shown in self.points.items() if shown} == (
            {(live.import_id, live.round)} if live else set()
        )
        assert set(self.points) <= kept, "points of ended rounds are left"

    def come_to_rest(self) -> None:
        """Let the world stand still, clear every doubt, and let the stages do what is due."""
        self.running.clear()
        self.sync()
        for key, one in list(self.imports.items()):
            if one.attention is not None:
                self.clear(key)
        for _ in range(100):
            self.backend_works()
            ready = self.startable()
            if not ready:
                later = [due[1] for due in self.due.values() if due]
                if not later:
                    return
                self.now = max(self.now, min(later))
                continue
            for key in ready:
                self.start(key)
                self.act(key)
                self.finish(key)
        raise AssertionError(f"it does not come to rest: {self.due}")


TestJourneys = Journey.TestCase
TestJourneys.settings = settings(max_examples=200, stateful_step_count=30)
