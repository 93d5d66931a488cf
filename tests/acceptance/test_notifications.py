"""Microsoft tells a running daemon of changes: graphsim calls the endpoint of its status page.

Drives are asked every ten minutes only, so whatever is found within a minute was told.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlsplit

import httpx
import pytest

from acceptance.village import write
from support.daemon import Daemon
from support.flood import AT_ONCE, flood
from support.processes import until
from support.sim import Sim
from support.valkey import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from acceptance.conftest import Figure

pytestmark = pytest.mark.timeout(180)

POLL_SECONDS = 600
PATIENCE_SECONDS = 90
"""Far from what it takes, and far from the interval."""
LIFETIME_SECONDS = 12
"""Of the subscriptions that are renewed before one's eyes."""
SILENCE_SECONDS = 2
HOLD_SECONDS = 40
"""For which a flood that goes on causes no other look."""
NEVER_SECONDS = 600
REVISIT_SECONDS = 8
SETTINGS = """
web_port = {port}
[notifications]
url = "http://127.0.0.1:{port}"
poll_seconds = {poll}
silence_seconds = {silence}
revisit_seconds = {revisit}
"""


@dataclass
class Told:
    """A daemon with one connected folder, of whose changes it is told."""

    daemon: Daemon
    folder: Path

    def subscriptions(self) -> list[dict[str, Any]]:
        """Return what graphsim holds, with the words that only its admin port shows."""
        found: list[dict[str, Any]] = self.daemon.sim.change("GET", "/subscriptions")[
            "subscriptions"
        ]
        return found

    def subscription(self, *, without: str = "") -> dict[str, Any]:
        """Wait for the one subscription; not that with a certain id."""

        def live() -> list[dict[str, Any]]:
            found = [one for one in self.subscriptions() if one["id"] != without]
            rows = self.rows()
            is_known = rows and rows[0]["state"] == "live"
            ids = [one["id"] for one in found]
            return found if is_known and ids == [rows[0]["remote_id"]] else []

        (one,) = until(live, seconds=PATIENCE_SECONDS, what=self.daemon.last_words)
        return one

    def rows(self) -> list[dict[str, Any]]:
        return self.daemon.rows("SELECT state, remote_id, wants_renewal FROM subscriptions")

    def settled(self) -> dict[str, Any]:
        """Wait until nothing is due any more that the grant itself made due."""
        one = self.subscription()
        until(self.rests, seconds=PATIENCE_SECONDS, what="the look that follows the grant")
        return one

    def rests(self) -> bool:
        """Whether the drive was asked since it was told of last, and is not asked now."""
        (drive,) = self.daemon.rows(
            "SELECT told_at < woken_at AND woken_at <= last_round_at + 1 AS rests FROM drives"
        )
        busy = self.daemon.rows("SELECT owner FROM reminders WHERE due_at IS NOT NULL")
        return bool(drive["rests"]) and not busy

    def call(self, one: dict[str, Any], word: str | None, *, path: str = "") -> int:
        """Call as Graph does; return the status."""
        body = call_of(one, word)
        return httpx.post(one["notificationUrl"] + path, json=body, timeout=60).status_code

    def found(self, words: str) -> float:
        """Wait until words are searchable; return when they were."""

        def shown() -> bool:
            return any(words in hit["snippet"] for hit in self.daemon.search(words))

        until(shown, seconds=PATIENCE_SECONDS, what=self.daemon.last_words)
        return time.monotonic()

    def deltas(self, since: int) -> int:
        return len(self.daemon.sim.requests(since=since, op="delta"))


def call_of(one: dict[str, Any], word: str | None) -> dict[str, Any]:
    note = {
        "subscriptionId": one["id"],
        "clientState": word,
        "changeType": "updated",
        "resource": one["resource"],
        "resourceData": None,
    }
    return {"value": [note]}


@contextmanager
def told(
    home: Path,
    *,
    grants: float | None = None,
    silence: float = NEVER_SECONDS,
    revisit: float = NEVER_SECONDS,
    poll: float = POLL_SECONDS,
) -> Iterator[Told]:
    folder = home / "Village"
    write(folder, "Ferry.txt", "The ferry to Ostrova leaves at noon.")
    sim = Sim(folder, home / "graphsim")
    daemon: Daemon | None = None
    try:
        sim.start()
        sim.change("PATCH", "/subscriptions", {"grants": grants})
        settings = SETTINGS.format(port=free_port(), poll=poll, silence=silence, revisit=revisit)
        daemon = Daemon(home, sim, poll=poll, grace=0.1, settings=settings)
        daemon.start()
        daemon.wait_for_rest(files=1)
        yield Told(daemon, folder)
        daemon.stop()
    finally:
        if daemon is not None:
            daemon.end()
        sim.stop()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    with told(tmp_path_factory.mktemp("told")) as made:
        yield made


def test_a_change_is_searchable_long_before_the_next_look(here: Told, figure: Figure) -> None:
    here.settled()
    (asked,) = (one["number"] for one in here.daemon.sim.requests(op="subscriptions"))
    looks = [one["number"] for one in here.daemon.sim.requests(op="delta")]
    assert looks[-1] > asked, "what happened before the grant was told to nobody"
    began = time.monotonic()
    write(here.folder, "Orchard.txt", "The Tarnbeck apples are picked late.")
    took = here.found("Tarnbeck") - began
    figure("a change that was told of is searchable after", f"{took:.1f} s")
    assert took < POLL_SECONDS / 4


def test_forged_calls_are_refused_and_wake_nobody(here: Told) -> None:
    one = here.settled()
    mark = here.daemon.sim.mark()
    for word in ("wrong", None, one["clientState"] + " ", one["clientState"].swapcase()):
        assert here.call(one, word) == 403
        assert here.call(one, word, path="/lifecycle") == 403
    other = one | {"notificationUrl": one["notificationUrl"] + "0"}
    assert here.call(other, one["clientState"]) == 403
    # The daemon looks for what is due each second: were one of these heard, it would be found
    # before the change that is told afterwards.
    write(here.folder, "Pears.txt", "The Quillonby pears ripen in the cellar.")
    here.found("Quillonby")
    assert here.deltas(mark) == 1


def test_a_handshake_gives_back_its_token_and_nothing_else_is_answered(here: Told) -> None:
    one = here.settled()
    token = "Validation: 100% + more, & all"
    url = f"{one['notificationUrl']}?validationToken={quote_plus(token)}"
    answer = httpx.post(url, timeout=60)
    assert (answer.status_code, answer.text) == (200, token)
    assert answer.headers["content-type"].startswith("text/plain")
    parts = urlsplit(url)
    nobody = f"{parts.scheme}://{parts.netloc}/notifications/graph/nobody?{parts.query}"
    assert httpx.post(nobody, timeout=60).status_code == 404


@pytest.mark.parametrize("calls", [500, pytest.param(10_000, marks=pytest.mark.soak)])
def test_a_flood_of_calls_makes_one_sync(here: Told, figure: Figure, calls: int) -> None:
    one = here.settled()
    mark = here.daemon.sim.mark()
    began = time.monotonic()
    body = call_of(one, one["clientState"])
    assert asyncio.run(flood(one["notificationUrl"], body, calls)) == {202: calls}
    took = time.monotonic() - began
    figure(f"a flood of {calls} calls over {AT_ONCE} connections took", f"{took:.1f} s")
    # What was told is written each second: before that the drive rests as well.
    until(
        lambda: here.deltas(mark) and here.rests(),
        seconds=PATIENCE_SECONDS,
        what="the look that the flood caused",
    )
    looks = here.deltas(mark)
    figure(f"a flood of {calls} calls made", f"{looks} delta call(s)")
    # Exactly one where the flood is over in time, however it falls on what is written each second.
    assert 1 <= looks <= 1 + took // HOLD_SECONDS


def test_a_demand_to_authorize_again_is_met_by_a_renewal(here: Told) -> None:
    one = here.settled()
    answer = here.daemon.sim.change("POST", f"/subscriptions/{one['id']}/reauthorization")
    assert answer == {"arrived": True}
    until(
        lambda: [each["needsReauthorization"] for each in here.subscriptions()] == [False],
        seconds=PATIENCE_SECONDS,
        what=here.daemon.last_words,
    )
    assert [each["id"] for each in here.subscriptions()] == [one["id"]]
    until(
        lambda: not here.rows()[0]["wants_renewal"],
        seconds=PATIENCE_SECONDS,
        what="the renewal to be written",
    )


def test_disconnecting_ends_it_at_graph(here: Told) -> None:
    """The last of those that share the daemon."""
    one = here.settled()
    begun = here.daemon.json("connection", "disconnect", "OneDrive", "--erase", "--yes")
    assert begun["ended_at"] is None

    def receipt() -> dict[str, Any]:
        (found,) = here.daemon.json("connection", "receipt")
        is_known = bool(here.subscriptions())
        assert not (found["ended_at"] and is_known), "complete, and Graph still knows it"
        return {} if is_known or not found["ended_at"] else dict(found)

    until(receipt, seconds=PATIENCE_SECONDS, what=here.daemon.last_words)
    assert here.rows() == []
    until(
        lambda: here.call(one, one["clientState"]) == 403,
        seconds=PATIENCE_SECONDS,
        what="a late call to be refused",
    )


@pytest.mark.soak
def test_a_subscription_is_renewed_at_half_of_its_life(tmp_path: Path) -> None:
    with told(tmp_path, grants=LIFETIME_SECONDS) as here:
        one = here.subscription()
        ends = {one["expirationDateTime"]}

        def renewed() -> bool:
            (now,) = here.subscriptions()
            assert now["id"] == one["id"]
            ends.add(now["expirationDateTime"])
            return len(ends) > 3

        until(renewed, seconds=PATIENCE_SECONDS, what=here.daemon.last_words)
        asked = [each["method"] for each in here.daemon.sim.requests(op="subscriptions")]
        assert asked.count("POST") == 1


@pytest.mark.soak
def test_one_that_died_in_silence_is_noticed_and_replaced(tmp_path: Path) -> None:
    with told(tmp_path, silence=SILENCE_SECONDS, poll=5) as here:
        dead = here.settled()
        here.daemon.sim.change("DELETE", f"/subscriptions/{dead['id']}")
        write(here.folder, "Orchard.txt", "The Tarnbeck apples are picked late.")
        here.found("Tarnbeck")
        again = here.subscription(without=dead["id"])
        assert again["notificationUrl"] != dead["notificationUrl"]
        # Which subscriptions there are is remembered for some seconds, for the sake of floods.
        until(
            lambda: here.call(dead, dead["clientState"]) == 403,
            seconds=PATIENCE_SECONDS,
            what="a replayed call to be refused",
        )
        assert here.call(again, dead["clientState"]) == 403, "a word of another subscription"
        assert here.call(again, again["clientState"]) == 202


@pytest.mark.soak
def test_a_word_is_followed_by_a_second_look_after_the_visibility_delay(tmp_path: Path) -> None:
    with told(tmp_path, revisit=REVISIT_SECONDS) as here:
        one = here.subscription()
        # The grant counts as a word, and has a second look too.
        time.sleep(2 * REVISIT_SECONDS)
        here.settled()
        mark = here.daemon.sim.mark()
        assert here.call(one, one["clientState"]) == 202
        until(lambda: here.deltas(mark) == 1, seconds=PATIENCE_SECONDS, what="the first look")
        until(lambda: here.deltas(mark) == 2, seconds=PATIENCE_SECONDS, what="the second look")
        first, second = [each["time"] for each in here.daemon.sim.requests(since=mark, op="delta")]
        assert second - first > REVISIT_SECONDS / 2
