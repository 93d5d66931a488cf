"""A folder with a few short documents, and questions about what became of one of them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from support.evidence import sha256
from support.processes import until
from support.watching import Watching

if TYPE_CHECKING:
    from pathlib import Path

    from support.demo import Demo

PATIENCE_SECONDS = 60

TEXTS = {
    "Ferry.txt": "The ferry to Ostrova leaves at noon and carries bicycles free of charge.",
    "Orchard/Apples.md": "# Apples\n\nThe russet apples of the upper orchard are picked late.",
    "Orchard/Pears.txt": "Pears ripen in the cellar, wrapped in paper, until the new year.",
    "Orchard/Deep/Plums.txt": "Plums for the distillery are weighed at the gate of the yard.",
    "Orchard/Deep/Quinces.html": "<p>Quinces are boiled for two hours before they are sieved.</p>",
    "Mill/Flour.txt": "The mill grinds rye on Mondays and spelt on every other Friday.",
    "Mill/Bread.txt": "Sourdough rests overnight in the cool room behind the mill.",
    "Harbour.txt": "The harbour master keeps the tide tables in the lower drawer.",
    "Spare/Well.txt": "The well behind the chapel was deepened by four metres last summer.",
    "Spare/Chapel.txt": "The chapel bell weighs as much as three oxen, the sexton says.",
    "Spare/Empty lot.txt": "An empty lot near the station waits for a new greenhouse.",
}


def write(folder: Path, path: str, text: str) -> None:
    """Replace a file in one step, as editors do; graphsim must never see half a file."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.parent / "partial"
    partial.write_text(text, encoding="utf-8")
    partial.replace(target)


@dataclass
class Place:
    """A document as search shows it."""

    path: str
    import_id: str
    round: int


def shown(demo: Demo, words: str, document_id: str) -> list[Place]:
    """Return how a document is shown for words: once, or not at all."""
    hits = demo.search(words, limit=50)
    return [
        Place(hit["path"], hit["import_id"], hit["round"])
        for hit in hits
        if hit["document_id"] == document_id
    ]


def is_shown_at(demo: Demo, words: str, document_id: str, path: str) -> bool:
    """Whether search shows a document at a path."""
    return [one.path for one in shown(demo, words, document_id)] == [path]


def documents(demo: Demo) -> dict[str, str]:
    """Return the ids of all documents by their paths, as ``imports`` tells them."""
    return {one["path"]: one["document_id"] for one in demo.json("imports")}


def document(demo: Demo, path: str) -> str:
    """Return the id of the document at a path."""
    return documents(demo)[path]


def story(demo: Demo, path: str) -> dict[str, Any]:
    """Return what ``why`` tells of a file."""
    (passport,) = demo.json("why", path)
    found: dict[str, Any] = passport
    return found


def events(version: dict[str, Any]) -> list[str]:
    return [event["event"] for event in version["events"]]


class Watch(Watching):
    """Searches without a break in a thread of its own, and remembers every answer.

    Attributes:
        answers: each with the time when it was asked for.
    """

    def __init__(self, demo: Demo, words: str, document_id: str) -> None:
        self.answers: list[tuple[float, list[Place]]] = []

        def look() -> None:
            asked = time.monotonic()
            self.answers.append((asked, shown(demo, words, document_id)))

        super().__init__(look, pause_s=0.02)

    def __enter__(self) -> Self:
        super().__enter__()
        until(lambda: self.answers, seconds=PATIENCE_SECONDS, what="the first answer")
        return self

    def versions(self, *, since: float = 0.0) -> list[str]:
        """Return the versions that were shown, in order, each change once; "" for none."""
        order: list[str] = []
        for asked, answer in self.answers:
            if asked < since:
                continue
            assert len(answer) <= 1
            now = answer[0].import_id if answer else ""
            if not order or order[-1] != now:
                order.append(now)
        return order


def erased(demo: Demo, import_id: str) -> None:
    """Wait until nothing of a version is left in index and store."""
    until(
        lambda: (
            not any(import_id == one for one, _ in demo.points())
            and not any(import_id in key for key in demo.objects())
        ),
        seconds=PATIENCE_SECONDS,
        what=f"the end of import {import_id}",
    )


def hidden(demo: Demo, words: str, document_id: str) -> None:
    until(
        lambda: not shown(demo, words, document_id),
        seconds=PATIENCE_SECONDS,
        what="the file to leave search",
    )


def found_again(demo: Demo, path: str) -> None:
    until(
        lambda: path in [one["path"] for one in demo.search(TEXTS[path])],
        seconds=PATIENCE_SECONDS,
        what=f"{path} to be found again",
    )


def paid(demo: Demo) -> dict[str, Any]:
    """Return what costs something: work of the backend, charges, objects."""
    return {
        "jobs": demo.rows("SELECT id FROM index_jobs ORDER BY id"),
        "ledger": demo.ledger(),
        "objects": {key: sha256(path) for key, path in demo.objects().items()},
    }
