"""Questions that the sample answers, each with the document that should be found first."""

from __future__ import annotations

from typing import NamedTuple


class SampleQuestion(NamedTuple):
    """A question as a person would type it, and the `path` of the document that answers it."""

    question: str
    path: str


SAMPLE_QUESTIONS = (
    SampleQuestion("how long do we keep invoices", "Handbook/Records retention.pdf"),
    SampleQuestion(
        "when is the video of the gate cameras overwritten", "Handbook/Records retention.pdf"
    ),
    SampleQuestion("daily allowance for a trip to Norway", "Handbook/Expense rules.docx"),
    SampleQuestion(
        "which hotel price per night including breakfast is allowed", "Handbook/Expense rules.docx"
    ),
    SampleQuestion("who may start the main pump of the flume", "Handbook/Operations handbook.pdf"),
    SampleQuestion(
        "how quickly must the duty engineer answer the phone", "Handbook/Operations handbook.pdf"
    ),
    SampleQuestion(
        "penalty the supplier pays if a delivery of goods is late",
        "Contracts/2026/Supply agreement #214.docx",
    ),
    SampleQuestion(
        "returnable crates and safety stock of housings", "Contracts/2026/Amendment to #214.rtf"
    ),
    SampleQuestion(
        "may the institute publish the results of the trial",
        "Contracts/Non-disclosure agreement Vassmark.pdf",
    ),
    SampleQuestion(
        "burst mode when the level rises quickly",
        "Releases/Gauge firmware 4.2.md",
    ),
    SampleQuestion("reach the gauge over Bluetooth", "Releases/Gauge firmware 4.1.txt"),
    SampleQuestion("algae found in the rinse bottle", "Laboratory/Calibration notes.txt"),
    SampleQuestion("which gloves for acetone", "Laboratory/Bench safety.pptx"),
    SampleQuestion(
        "oscilloscope and insulation tester of the electronics room",
        "Laboratory/Instrument inventory.xlsx",
    ),
    SampleQuestion(
        "peak of the flood after the snow melt, bridge closed",
        "Laboratory/Orna measurements 2026.csv",
    ),
    SampleQuestion("price of a radar flow gauge", "Sales/Price list 2026.xlsx"),
    SampleQuestion("which customers moved their projects to autumn", "Sales/Quarterly review.pptx"),
    SampleQuestion("how do I send a gauge back for repair", "Support/Questions customers ask.html"),
    SampleQuestion("que faire en cas de crue de l'Isère", "Sécurité/Procédure d'évacuation.docx"),
)
