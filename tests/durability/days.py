"""A day in the life of a connected folder: everything happens to it that can, in order.

The test acts on the drive and on the services around; lives of drivefeed come and go meanwhile.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drivefeed.stores.keys import PARTIAL
from durability.hours import ANY_HOUR, GOES_WRONG, IN_HOUR
from durability.memories import NoCatalogError
from support.embeddings import Fault
from support.evidence import files_below, sha256

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from durability.lives import Run
    from durability.town import Town

CHANGES_OF_MIND = 6

_WANTED = """
SELECT items.name, imports.sha256 FROM documents
JOIN imports ON imports.id = documents.live_import_id AND imports.round = documents.live_round
JOIN items ON items.drive_id = documents.drive_id AND items.item_id = documents.item_id
WHERE imports.state = 'settled'
"""
_DUE = "SELECT subject_id, stage FROM reminders WHERE due_at IS NOT NULL AND stage <> 'discover'"


@dataclass
class Day:
    """A run, its drive, and what is done to both."""

    town: Town
    run: Run
    folder: Path

    # What people do at the source

    def write(self, name: str, words: str) -> None:
        """Make or edit a file."""
        (self.folder / name).write_text(words, encoding="utf-8")

    def expected(self) -> set[tuple[str, str]]:
        """Return what should be found: each readable file with its hash."""
        return {
            (path.name, sha256(path))
            for path in files_below(self.folder).values()
            if path.suffix == ".txt"
        }

    # What is true outside

    def live(self) -> set[tuple[str, str]]:
        """Return what is live: names and hashes."""
        return {(row["name"], row["sha256"]) for row in self.run.rows(_WANTED)}

    def rests(self) -> bool:
        """Whether all is as it should be and nothing is due."""
        with suppress(NoCatalogError):
            return (
                self.live() == self.expected()
                and not self.run.memory.unrest(len(files_below(self.folder)))
                and not self.run.rows(_DUE)
                and not self.partial()
            )
        return False

    def partial(self) -> list[Path]:
        """Return what was written of objects and never ended."""
        return list((self.run.data / "objects" / PARTIAL).iterdir())

    def comes_to_rest(self, what: str) -> None:
        """Let lives work until all is at rest."""
        self.run.up(until=self.rests, what=f"rest {what}; {self.unrest()}")

    def unrest(self) -> str:
        """Say what is not as it should be."""
        with suppress(NoCatalogError):
            return (
                f"live {self.live() ^ self.expected()}, due {self.run.rows(_DUE)}, "
                f"{self.run.memory.unrest(len(files_below(self.folder)))}"
            )
        return "no catalog"

    def states(self, name: str) -> list[str]:
        """Return the states of all imports of a file."""
        with suppress(NoCatalogError):
            return [
                row["state"]
                for row in self.run.rows(
                    "SELECT state FROM imports JOIN documents ON documents.id = document_id "
                    "JOIN items USING (drive_id, item_id) WHERE items.name = ?",
                    name,
                )
            ]
        return []

    # The day

    def passes(self, names: Sequence[str]) -> None:
        """Go through the whole day and die at each of these names once.

        Each hour brings a few names more, so that no file has bad luck too often in a row: what
        is interrupted five times asks a person.
        """
        hours = (
            *(self.morning, self.edits, self.returns, self.change_of_mind, self.same_bytes),
            *(self.question, self.many_removals, self.slow_hours, self.leftovers),
        )
        known = tuple(prefix for prefixes in IN_HOUR.values() for prefix in prefixes)
        others = [name for name in names if not name.startswith(known)]
        for number, hour in enumerate(hours):
            # A life dies only at the names it was given when it began.
            self.run.abandon()
            here = IN_HOUR.get(hour.__name__, ())
            self.run.armed |= {name for name in names if here and name.startswith(here)}
            self.run.armed |= set(others[number::ANY_HOUR] if number < ANY_HOUR else ())
            hour()

    def morning(self) -> None:
        """The folder is connected; one of its files cannot be read."""
        for number in range(3):
            self.write(f"note {number}.txt", f"Note {number}: oil for the lamp of pier {number}.")
        self.write("broken.docx", "This is no document.")
        self.run.arrange(faults=GOES_WRONG)
        self.comes_to_rest("in the morning")

    def edits(self) -> None:
        """One file is edited, one renamed, one deleted, and one edited while it is copied."""
        self.write("note 0.txt", "Note 0: another keeper.")
        (self.folder / "note 1.txt").rename(self.folder / "letter 1.txt")
        (self.folder / "note 2.txt").unlink()
        self.comes_to_rest("after edits")
        path = self.folder / "note 0.txt"
        meanwhile = "Note 0: edited while it was copied, so that sizes and hashes differ."
        self.run.arrange(actions={"transfer.download.before": (str(path), meanwhile)})
        path.write_text("Note 0: about to be edited again.", encoding="utf-8")
        self.run.up(until=lambda: path.read_text() == meanwhile, what="a copy")
        self.comes_to_rest("after an edit in the middle of a copy")

    def returns(self) -> None:
        """What was deleted comes back, and a file has its first content again."""
        self.write("note 2.txt", "Note 2: oil for the lamp of pier 2.")
        self.write("note 0.txt", "Note 0: oil for the lamp of pier 0.")
        self.comes_to_rest("after returns")

    def change_of_mind(self) -> None:
        """A file is edited while its last version is being indexed."""
        self.run.arrange(actions={})
        for number in range(CHANGES_OF_MIND):
            self.town.service.faults.extend([Fault(slow=1.5)] * 4)
            self.write("note 0.txt", f"Note 0: version {number} that nobody will want.")
            self.run.up(
                until=lambda: "submitted" in self.states("note 0.txt"), what="a submitted version"
            )
            self.write("note 0.txt", f"Note 0: version {number} that everybody wants.")
            self.run.up(
                until=lambda: "submitted" not in self.states("note 0.txt"), what="a cancellation"
            )
            self.town.service.faults.clear()
            self.comes_to_rest("after a change of mind")
            # A death may have come in between, so that there was nothing to cancel.
            if not any(one.startswith(IN_HOUR["change_of_mind"]) for one in self.run.armed):
                return

    def same_bytes(self) -> None:
        """Another version brings the bytes of the one before."""
        words = "Note 1: the same bytes as before."
        self.write("letter 1.txt", words)
        self.comes_to_rest("before the same bytes")
        self.town.sim.faults.add("alter", op="download", count=-1, extra="as before.")
        self.write("letter 1.txt", words.removesuffix("as before."))
        before = len(self.states("letter 1.txt"))
        self.run.up(
            until=lambda: (
                len(self.states("letter 1.txt")) > before
                and self.states("letter 1.txt").count("withdrawn") >= before
            ),
            what="the same bytes",
        )
        self.town.sim.faults.clear()
        self.write("letter 1.txt", "Note 1: bytes of its own.")
        self.comes_to_rest("after the same bytes")

    def question(self) -> None:
        """A person is asked about a file, and tries again."""
        self.run.arrange(faults=GOES_WRONG | {"transfer.download.before": "person"})
        self.write("note 2.txt", "Note 2: asks for a person.")
        self.run.up(until=self._asks, what="a question to a person")
        self.run.arrange(faults=GOES_WRONG)
        self.run.does("retry")
        self.comes_to_rest("after a question")

    def _asks(self) -> list[Any]:
        return self.run.rows("SELECT 1 FROM imports WHERE attention IS NOT NULL")

    def leftovers(self) -> None:
        """A process died elsewhere, and a question is answered on the board."""
        self.run.arrange(faults=GOES_WRONG | {"transfer.download.after": "person"})
        self.write("note 2.txt", "Note 2: asks once more.")
        self.run.up(until=self._asks, what="another question")
        self.run.arrange()
        self.run.down()
        self.run.plays("leftovers")
        self.comes_to_rest("at the end")
        self.run.down()

    def many_removals(self) -> None:
        """Too much is deleted at once; people are told, and one of them approves."""
        for number in range(4):
            self.write(f"leaf {number}.txt", f"Leaf {number} of the book of tides.")
        self.comes_to_rest("before removals")
        self.town.receiver.answers.append((500, {}, b"made up"))
        since = time.time_ns() // 1_000_000
        for number in range(4):
            (self.folder / f"leaf {number}.txt").unlink()
        asks = "SELECT 1 FROM connections WHERE attention IS NOT NULL"
        self.run.up(until=lambda: self.run.rows(asks), what="a brake that asks")
        self.run.up(until=self._notice("sent_at IS NOT NULL", since), what="a notice")
        late = "sent_at IS NULL AND attempts > 0"
        self.run.up(until=self._notice(late, since), what="a notice that is not taken")
        self.run.does("removals", "--approve")
        self.run.down()
        self._rename_channel("nobody", "somebody")
        self.run.up(until=self._notice("gave_up_at IS NOT NULL", since), what="a notice given up")
        self.comes_to_rest("after removals")

    def _notice(self, where: str, since: int) -> Any:
        """Return what asks for a delivery of a notice that was not there before."""
        those = "SELECT id FROM notices WHERE first_at >= ?"

        def found() -> list[Any]:
            return self.run.rows(
                f"SELECT 1 FROM notice_deliveries WHERE {where} AND notice_id IN ({those})", since
            )

        return found

    def _rename_channel(self, old: str, new: str) -> None:
        path = self.run.data / "drivefeed.toml"
        path.write_text(path.read_text().replace(f'name = "{old}"', f'name = "{new}"'))

    def slow_hours(self) -> None:
        """A pause finds a file on its way, and so does an end without patience."""
        self.run.down()
        path = self.run.data / "drivefeed.toml"
        settings = path.read_text()
        path.write_text(settings.replace("shutdown_seconds = 2.0", "shutdown_seconds = 0.0"))
        self.write("note 0.txt", "Note 0: on its way when all was paused.")
        self.run.up(until=self._claimed("transfer"), what="a transfer", **self._slow(0.7))
        self.run.does("pause")
        self.run.up(until=self._is_parked, what="a parked file", **self._slow(0.7))
        self.run.does("resume")
        self.run.down(**self._slow(0.7))
        ends = {name for name in self.run.armed if name.startswith("hand_back")} | {""}
        while ends:
            self.run.up(until=self._claimed("transfer"), what="a transfer", **self._slow(30.0))
            self.run.down(**self._slow(0.0))
            ends = {name for name in self.run.armed if name.startswith("hand_back")}
        path.write_text(settings)
        self.comes_to_rest("after slow hours")

    def _slow(self, seconds: float) -> dict[str, Any]:
        return {"scene": "durability.scenes:slow_up", "given": {"pace_seconds": seconds}}

    def _claimed(self, stage: str) -> Any:
        def found() -> list[Any]:
            return self.run.rows(
                "SELECT 1 FROM reminders WHERE stage = ? AND owner LIKE ?",
                stage,
                f"%-{self.run.pid}-%",
            )

        return found

    def _is_parked(self) -> list[Any]:
        return self.run.rows("SELECT 1 FROM imports WHERE hold = 'paused'")
