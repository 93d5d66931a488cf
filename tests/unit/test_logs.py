"""Logs as they are written: a program that reads them finds one JSON object on each line."""

from __future__ import annotations

import io
import json
import logging
import warnings
from typing import TYPE_CHECKING, Any

from drivefeed.telemetry import configure_logs, log

if TYPE_CHECKING:
    import pytest

SECRET = "Bearer abcdefghijklmnop"


def _said(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Let us and libraries speak, and return what each line holds."""
    stream = io.StringIO()
    # pytest listens at the root as well, and who is second there would not be heard.
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    configure_logs(json=True, stream=stream)
    log("room").info("ours", count=1)
    library = logging.getLogger("a.library")
    library.warning("It sent %s to somebody.", SECRET)
    library.error("It fell.", exc_info=ValueError(SECRET))
    warnings.warn("It is old.", UserWarning, stacklevel=1)
    library.info("nobody needs this")
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_what_libraries_say_has_the_form_of_what_we_say(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, sent, fell, old = _said(monkeypatch)
    assert (ours["event"], ours["count"]) == ("ours", 1)
    assert (sent["event"], sent["logger"], sent["level"]) == ("library", "a.library", "warning")
    assert sent["words"] == "It sent Bearer *** to somebody."
    assert (fell["words"], fell["level"]) == ("It fell.", "error")
    assert "It is old." in old["words"]
    assert all(one["timestamp"] for one in (ours, sent, fell, old))


def test_no_secret_comes_with_a_librarys_error(monkeypatch: pytest.MonkeyPatch) -> None:
    said = json.dumps(_said(monkeypatch))
    assert "ValueError: Bearer ***" in said
    assert SECRET not in said
