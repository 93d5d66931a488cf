"""A page limit, from outside: one file fits, the other waits and goes on with a higher limit."""

from __future__ import annotations

import time
from io import BytesIO
from typing import TYPE_CHECKING

import pypdfium2
import pytest

from drivefeed.sample.manuscript import Heading, PageBreak, Paragraph
from drivefeed.sample.pdf import render_pdf
from support.daemon import Daemon
from support.processes import until
from support.sim import Sim

if TYPE_CHECKING:
    from pathlib import Path

    from acceptance.conftest import Figure

PAGES = 70
PATIENCE_SECONDS = 120.0


def pdf_of(words: str) -> bytes:
    """70 pages, the first of which says something."""
    text = render_pdf([Heading(1, words), Paragraph(f"{words}. " * 5), PageBreak()])
    document = pypdfium2.PdfDocument(text)
    while len(document) < PAGES:
        document.new_page(200, 200)
    whole = BytesIO()
    document.save(whole)
    document.close()
    return whole.getvalue()


def held(daemon: Daemon) -> list[dict[str, str]]:
    return daemon.rows("SELECT id, state, detail FROM imports WHERE hold = 'quota'")


@pytest.mark.timeout(300)
def test_two_files_of_70_pages_and_a_limit_of_100(tmp_path: Path, figure: Figure) -> None:
    folder = tmp_path / "OneDrive"
    folder.mkdir()
    sim = Sim(folder, tmp_path / "graphsim")
    daemon: Daemon | None = None
    try:
        sim.start()
        daemon = Daemon(tmp_path, sim)
        daemon.start()
        until(
            lambda: daemon.rows("SELECT id FROM orgs"),
            seconds=PATIENCE_SECONDS,
            what=daemon.last_words,
        )
        daemon.json("usage", "limit", "100")
        for name in ("Gannets", "Puffins"):
            (tmp_path / f"{name}.pdf").write_bytes(pdf_of(f"Where {name.lower()} breed"))
            (tmp_path / f"{name}.pdf").rename(folder / f"{name}.pdf")
        until(
            lambda: len(daemon.ledger()) == 1 and len(held(daemon)) == 1,
            seconds=PATIENCE_SECONDS,
            what=daemon.last_words,
        )
        (waiting,) = held(daemon)
        assert (waiting["state"], waiting["detail"]) == (
            "stored",
            f"it needs {PAGES} pages, and 30 are free",
        )
        (usage,) = daemon.json("usage")
        assert (usage["used"], usage["held"], usage["free"]) == (PAGES, 0, 30)
        assert usage["files_waiting"] == 1
        assert daemon.json("imports", "--reason", "quota")[0]["standing"] == "held"

        daemon.json("usage", "limit", "140")
        began = time.monotonic()
        until(
            lambda: daemon.rows(
                "SELECT id FROM import_events WHERE import_id = "
                f"'{waiting['id']}' AND event = 'submitting'"
            ),
            seconds=5.0,
            what=daemon.last_words,
        )
        figure("from the raised limit to the next step", f"{time.monotonic() - began:.1f} s")
        until(lambda: len(daemon.ledger()) == 2, seconds=PATIENCE_SECONDS, what=daemon.last_words)
        assert [one.pages for one in daemon.ledger()] == [PAGES, PAGES]
        assert len(daemon.search("where puffins breed")) == 2
        assert daemon.json("usage", "recount")[0]["holds"]
        assert daemon.json("verify")["holds"]
    finally:
        if daemon is not None:
            daemon.stop()
        sim.stop()
