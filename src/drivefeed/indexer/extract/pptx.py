"""Presentations: one page per slide, with its tables, groups, charts, diagrams and notes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract.docx import FlowText
from drivefeed.indexer.extract.package import Package, Properties
from drivefeed.indexer.extract.pages import Draft
from drivefeed.indexer.model import Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from drivefeed.indexer.extract.package import Relationships
    from drivefeed.indexer.model import Limits


class _SlideOrder:
    """Reads the order of slides from the presentation part."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "p:sldId" and "r:id" in attributes:
            self.ids.append(attributes["r:id"])

    def end(self, name: str) -> None:
        pass

    def data(self, text: str) -> None:
        pass


class ChartText(FlowText):
    """Collects a chart's title and the names of its series and categories."""

    def __init__(self, draft: Draft) -> None:
        super().__init__(draft)
        self._cached = False
        self._value = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begin an element."""
        super().start(name, attributes)
        if name == "c:strCache":
            self._cached = True
        elif name == "c:v":
            self._value = self._cached

    def end(self, name: str) -> None:
        """End an element."""
        super().end(name)
        if name == "c:strCache":
            self._cached = False
        elif name == "c:v" and self._value:
            self._value = False
            self._put("\n")

    def data(self, text: str) -> None:
        """Take character data."""
        super().data(text)
        if self._value:
            self._put(text)


class CommentText:
    """Collects the comments on a slide: old ones are `p:text`, threaded ones DrawingML."""

    def __init__(self, draft: Draft) -> None:
        self._flow = FlowText(draft)
        self._inside = False
        self._pieces: list[str] = []

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begin an element."""
        self._inside = name == "p:text"
        self._flow.start(name, attributes)

    def end(self, name: str) -> None:
        """End an element."""
        if name == "p:text":
            self._pieces.append("\n")
        self._inside = False
        self._flow.end(name)

    def data(self, text: str) -> None:
        """Take character data."""
        if self._inside:
            self._pieces.append(text)
        self._flow.data(text)

    def text(self) -> str:
        """Return everything that was collected."""
        return "".join(self._pieces) + self._flow.text()


def read_pptx(path: Path, *, media_type: str, limits: Limits) -> Draft:
    """Read a PPTX, PPTM, PPSX or POTX file; slides in the order of the show.

    Raises:
        Rejected: `corrupt`, `too_large`, `encrypted`.
    """
    draft = Draft(media_type, limits)
    with Package(path, limits) as package:
        properties = Properties.of(package)
        main = next(iter(package.relationships().of_kind("officeDocument")), "ppt/presentation.xml")
        if not package.has(main):
            raise Rejected(
                Reason.CORRUPT, "The file is damaged: the presentation itself is missing."
            )
        order = _SlideOrder()
        package.read(main, order)
        related = package.relationships(main)
        for identifier in order.ids:
            part = related.by_id(identifier)
            draft.add(_slide(package, part, draft) if part and package.has(part) else "")
    draft.title = properties.title
    draft.language = properties.language
    return draft


def _slide(package: Package, part: str, draft: Draft) -> str:
    flow = FlowText(draft)
    package.read(part, flow)
    related = package.relationships(part)
    texts = [flow.text()]
    for kinds, reader in (
        (("chart",), ChartText),
        (("diagramData",), FlowText),
        (("notesSlide",), FlowText),
        (("comments",), CommentText),
    ):
        texts += _related(package, related, kinds, reader, draft)
    return "\n".join(texts)


def _related(
    package: Package,
    related: Relationships,
    kinds: tuple[str, ...],
    reader: type[FlowText | CommentText],
    draft: Draft,
) -> list[str]:
    texts = []
    for part in related.of_kind(*kinds):
        if package.has(part):
            collected = reader(draft)
            package.read(part, collected)
            texts.append(collected.text())
    return texts
