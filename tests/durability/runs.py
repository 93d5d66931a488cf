"""Runs of few files, each for what a day of a folder does not bring."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from integration.delegated.kit import signed_in
from support.embeddings import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from durability.days import Day

INDEX = "durability.scenes_index"
LATER = "durability.scenes_kept"
TOLD = "durability.scenes_told"
ASTRAY = "durability.scenes_astray"
HELD = 4
"""So often a service refuses: more often than lives die of noting it."""
LEAVING = "durability.scenes_leaving"


def small(day: Day) -> None:
    """Three files, and rest."""
    for number in range(3):
        day.write(f"note {number}.txt", f"Note {number}: the keeper of lamp {number}.")
    day.comes_to_rest("of a small folder")
    day.run.down()


def office(day: Day) -> None:
    """People change what can be changed by commands."""
    small(day)
    day.run.plays("office")
    day.run.does("connection", "set", "The drive", "--max-size", "50 MB", "--apply")
    day.comes_to_rest("after office hours")
    day.run.down()


def tokens(day: Day) -> None:
    """A person's tokens are refreshed."""
    small(day)
    found = asyncio.run(signed_in(day.town.sim))
    ends = day.town.sim.endpoints
    account = {
        "tenant_id": ends.tenant_id,
        "client_id": ends.client_id,
        "authority": ends.login_url,
        "graph_url": ends.graph_url,
        "ca_file": str(ends.ca_file),
    }
    user = {"home_account_id": found.user.home_account_id, "user_name": found.user.user_name}
    day.run.plays("refresh", account=account, user=user, cache=found.cache)
    day.run.does("secrets", "rotate", "--new-key")


def reindex(day: Day) -> None:
    """Another embedding model takes over."""
    small(day)
    # What was put in use is not put in use again, so the last of its names need another one.
    day.run.plays("reindex", of=INDEX, to="second", model="second")
    day.run.plays("reindex", of=INDEX, to=None, model="first")
    day.comes_to_rest("after a reindex")
    day.run.down()
    # The organization goes its own way, and comes back.
    for out in (True, False):
        day.run.plays("move", of=INDEX, out=out)
        day.comes_to_rest("after a move")
        day.run.down()
    day.town.service.faults += [Fault(status=401)] * HELD
    day.write("held.txt", "It waits until the service takes the key.")
    day.comes_to_rest("after a wait")
    day.run.down()


def quota(day: Day) -> None:
    """A page limit is reached; a correction lets the one in line go on, and a day begins."""
    small(day)
    day.run.does("usage", "limit", "4")
    for number in range(2):
        day.write(f"more {number}.txt", f"More {number}: one of two for a single page.")
    waits = "SELECT 1 FROM imports WHERE hold = 'quota'"
    fits = "SELECT 1 FROM imports WHERE state = 'settled'"
    day.run.up(
        until=lambda: len(day.run.rows(fits)) == 4 and day.run.rows(waits),
        what="one that waits for pages",
    )
    day.run.does("usage", "correct", "--pages=-1", "--reason", "Counted twice.")
    day.comes_to_rest("after a correction")
    day.run.down()
    day.run.plays("turn", of=LATER)
    day.comes_to_rest("in another period")
    day.run.down()


def keeping(day: Day) -> None:
    """The catalog forgets what is old, and later all of an hour: it is restored."""
    small(day)
    day.write("note 0.txt", "Note 0: edited, so that a version is gone.")
    day.comes_to_rest("after an edit")
    day.run.down()
    day.run.plays("ages", of=LATER)
    day.run.memory.back_up(day.run)
    day.write("came.txt", "It came after the backup.")
    day.write("note 1.txt", "Note 1: edited after the backup.")
    day.comes_to_rest("of the lost hour")
    day.run.down()
    (day.folder / "came.txt").unlink()
    day.run.memory.restore(day.run)
    day.run.plays("lose", of=LATER)
    day.run.up(until=lambda: _is_recovered(day), what="a recovery")
    day.comes_to_rest("after a restore")
    day.run.down()


def _is_recovered(day: Day) -> bool:
    (fact,) = day.run.rows("SELECT value FROM facts WHERE name = 'restored'")
    return json.loads(fact["value"]).get("done_at") is not None


def backend(day: Day) -> None:
    """A backend calls before it is asked."""
    small(day)
    day.town.service.faults.append(Fault(slow=1.5))
    day.write("note 0.txt", "Note 0: a version that takes its time.")
    accepted = (
        "SELECT 1 FROM imports JOIN reminders ON subject_id = imports.id"
        " WHERE state = 'submitted' AND stage = 'poll' AND owner IS NULL"
    )
    day.run.up(until=lambda: day.run.rows(accepted), what="an accepted version")
    day.run.abandon()
    day.run.plays("called", of=LATER)
    day.run.plays("brought", of=LATER)
    day.town.service.faults.clear()
    day.comes_to_rest("after a call")
    day.run.down()


def leaving(day: Day) -> None:
    """Things are mended, forgotten and remembered; the folder leaves, and comes back."""
    small(day)
    day.run.plays("mend", of=LEAVING)
    day.comes_to_rest("after a repair")
    day.run.down()
    day.run.plays("forgotten", of=LEAVING)
    day.comes_to_rest("after a file was remembered")
    day.run.down()
    day.run.plays("disconnected", of=LEAVING)
    day.run.up(until=lambda: _is_erased(day), what="a whole receipt")
    day.run.down()
    assert not day.run.rows("SELECT 1 FROM items")
    day.run.plays("connected", of=LEAVING)
    day.comes_to_rest("of a folder that came back")
    day.run.down()


def astray(day: Day) -> None:
    """A drive is read with difficulty."""
    small(day)
    day.run.plays("astray", of=ASTRAY)
    day.comes_to_rest("after difficulties")
    day.run.down()


def _is_erased(day: Day) -> bool:
    rows = day.run.rows("SELECT value FROM facts WHERE name LIKE 'receipt:%'")
    return bool(rows) and json.loads(rows[0]["value"])["ended_at"] is not None


def told(day: Day) -> None:
    """Microsoft is asked to tell of changes, for longer, and no more."""
    small(day)
    day.run.plays("told", of=TOLD)
    day.comes_to_rest("after it was told")
    day.run.down()


RUNS: dict[str, tuple[Callable[[Day], None], tuple[str, ...]]] = {
    "office": (
        office,
        (
            *("account.accept", "account.add", "account.change", "account.ensure"),
            *("account.offer", "account.remove", "account.clear"),
            *(
                "account.state",
                "account.unreached",
                "collection.begin",
                "collection.give_up",
                "connection.rename",
            ),
            *("declare", "key.", "org.add", "org.rename", "plan.apply"),
            *("removals.discard", "resume", "session."),
        ),
    ),
    "tokens": (tokens, ("tokens.", "lease.release", "credential.")),
    "reindex": (
        reindex,
        ("reindex.", "collection.forget", "embedding.", "index_job.hold"),
    ),
    "quota": (quota, ("quota.", "reserve", "correct", "period")),
    "keeping": (
        keeping,
        ("budgets", "retention.", "notice.forget", "restore.", "queue.clear", "recovery."),
    ),
    "leaving": (
        leaving,
        (
            *("disconnect", "erase.", "forget", "remember", "mend."),
            *("reconcile.", "reread"),
        ),
    ),
    "told": (told, ("subscription.", "told", "permissions.")),
    "astray": (astray, ("drive.route", "round.")),
    "backend": (backend, ("org.sender", "poll_now", "relay.bring_back")),
}
"""Runs by name, each with what the names begin with at which its lives die."""
