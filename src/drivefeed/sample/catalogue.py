"""Which documents the sample consists of, and how each comes to be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from drivefeed.sample.manuscript import parse, read_text
from drivefeed.sample.measurements import render_measurements
from drivefeed.sample.pdf import render_pdf
from drivefeed.sample.rich_text import render_rtf
from drivefeed.sample.slides import render_pptx
from drivefeed.sample.word import render_docx
from drivefeed.sample.workbook import render_xlsx

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.sample.manuscript import Block

_RENDERERS: dict[str, Callable[[list[Block]], bytes]] = {
    ".docx": render_docx,
    ".pdf": render_pdf,
    ".pptx": render_pptx,
    ".rtf": render_rtf,
    ".xlsx": render_xlsx,
}


@dataclass(frozen=True)
class SampleDocument:
    """One document of the sample.

    Attributes:
        path: where it lies below the sample's folder, with `/`, in Unicode's composed form.
        manuscript: the file in `manuscripts/` that holds its text; empty for measurements.
    """

    path: str
    manuscript: str = ""

    def render(self) -> bytes:
        """Return the document's bytes: the same in each run with the same library versions."""
        if not self.manuscript:
            return render_measurements()
        text = read_text(self.manuscript)
        render = _RENDERERS.get(PurePosixPath(self.path).suffix)
        return render(parse(text)) if render else text.encode("utf-8")


SAMPLE_DOCUMENTS = (
    SampleDocument("Start here.md", "start_here.md"),
    SampleDocument("Contracts/2026/Amendment to #214.rtf", "amendment.txt"),
    SampleDocument("Contracts/2026/Supply agreement #214.docx", "supplier_contract.txt"),
    SampleDocument("Contracts/Non-disclosure agreement Vassmark.pdf", "nda.txt"),
    SampleDocument("Handbook/Expense rules.docx", "expense_rules.txt"),
    SampleDocument("Handbook/Operations handbook.pdf", "operations_handbook.txt"),
    SampleDocument("Handbook/Records retention.pdf", "records_retention.txt"),
    SampleDocument("Laboratory/Bench safety.pptx", "bench_safety.txt"),
    SampleDocument("Laboratory/Calibration notes.txt", "calibration_notes.txt"),
    SampleDocument("Laboratory/Instrument inventory.xlsx", "instrument_inventory.txt"),
    SampleDocument("Laboratory/Orna measurements 2026.csv"),
    SampleDocument("Releases/Gauge firmware 4.1.txt", "release_notes_4_1.txt"),
    SampleDocument("Releases/Gauge firmware 4.2.md", "release_notes_4_2.md"),
    SampleDocument("Sales/Price list 2026.xlsx", "price_list.txt"),
    SampleDocument("Sales/Quarterly review.pptx", "quarterly_review.txt"),
    SampleDocument("Support/Questions customers ask.html", "support_questions.html"),
    SampleDocument("Sécurité/Procédure d'évacuation.docx", "evacuation_fr.txt"),
)
