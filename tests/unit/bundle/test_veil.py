from __future__ import annotations

import json
import re
import zipfile
from typing import TYPE_CHECKING

import pytest

from drivefeed.cli.support_settings import shown, words_of_ours
from drivefeed.domain.reasons import Reason
from drivefeed.domain.words import meaning_of, remedy_of
from drivefeed.services.bundle import Bundle
from drivefeed.services.bundle_log import last_lines, veiled_line
from drivefeed.services.bundle_veil import Veil
from drivefeed.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {
    "account": {"Contoso"},
    "file": {"Plan for Q4.docx", "ab"},
    "tenant": {"8c1e7a52-0000-4000-8000-00000000abcd"},
    "machine": {"vm"},
}
VEIL = Veil(NAMES, words=words_of_ours())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Account 'Contoso' signs in.", "Account '<account>' signs in."),
        ("contoso and Contosoland", "<account> and …"),
        ("'plan for q4.docx' failed", "'<file>' failed"),
        ("'A name nobody listed' failed", "'…' failed"),
        ("Set 'qdrant_url' or 'extraction.ocr'.", "Set 'qdrant_url' or 'extraction.ocr'."),
        ("Run 'drivefeed account list'.", "Run 'drivefeed account list'."),
        ("Run 'drivefeed resume Salaries'.", "Run '…'."),
        ("mail to ada@contoso.example", "mail to <person>"),
        ("at /srv/ada/My Documents/x", "at <path> <path>"),
        ("https://contoso.sharepoint.com/sites/x?tempauth=abc", "https://<host>"),
        ("https://graph.microsoft.com/v1.0/me", "https://graph.microsoft.com"),
        ("contoso.sharepoint.com:443 answers", "<host>:443 answers"),
        ("tenant 9f1e7a52-1111-4000-8000-00000000abcd unknown", "tenant <id> unknown"),
        ("drive b!abcdefghijklmnopqrstuv", "drive <drive>"),
        ("Salaries 2026.xlsx is encrypted", "<file> is encrypted"),
        ("redis://:pass-word-1@10.0.0.1:6379/0", "redis://<host>:6379"),
        ("3 of 4 files, 24/7", "3 of 4 files, 24/7"),
        ("Eve Müller-Lüdenscheidt signed in", "… … signed in"),
        ("path=Löhne März.odt", "path=… …"),
        ("fileserver.fjord.se did not answer", "… did not answer"),
        (
            "srv-fin01 and 10.1.2.3 and fd00::7, but 127.0.0.1 and ::1",
            "… and <host> and <host>, but 127.0.0.1 and ::1",
        ),
        ("signs in as drive reader, with", "signs in as <name>, with"),
        ("owner=vm-12005-0a1b2c", "owner=<machine>-…"),
        (
            "At 2026-11-30T02:03:02.123456Z: ConnectError: [Errno 111] Connection refused (4.2 s)",
            "At 2026-11-30T02:03:02.123456Z: ConnectError: [Errno 111] Connection refused (4.2 s)",
        ),
        (
            "AADSTS7000215, CERTIFICATE_VERIFY_FAILED, v1.0, Files.Read.All",
            "AADSTS7000215, CERTIFICATE_VERIFY_FAILED, v1.0, Files.Read.All",
        ),
    ],
)
def test_names_are_left_out_of_sentences(text: str, left: str) -> None:
    assert VEIL.text(text) == left


def test_names_stay_where_they_are_wanted_and_secrets_never() -> None:
    veil = Veil(NAMES, with_names=True)
    assert veil.text("'Contoso' at redis://:secret-1@h/0") == "'Contoso' at redis://:***@h/0"


def test_a_traceback_keeps_its_frames_and_loses_its_message() -> None:
    kept = VEIL.traceback(
        "Traceback (most recent call last):\n"
        '  File "/srv/contoso/lib/python3.11/site-packages/httpx/_client.py", line 7, in send\n'
        "    raise ValueError(request.url)\n"
        "ValueError: https://contoso.sharepoint.com/x?tempauth=abc 'Salaries'\n"
    )
    assert 'File "…/site-packages/httpx/_client.py", line 7, in send' in kept
    assert "    raise ValueError(request.url)" in kept
    assert "ontoso" not in kept
    assert "Salaries" not in kept
    assert "abc" not in kept


def test_a_line_of_the_log_keeps_codes_and_ids() -> None:
    line = {
        "event": "stage_failed",
        "stage": "transfer",
        "import_id": "1f1e7a52-1111-4000-8000-00000000abcd",
        "error": "'Salaries.xlsx' of ada@contoso.example failed.",
        "ms": 7,
    }
    kept = json.loads(veiled_line(json.dumps(line), VEIL))
    assert kept == line | {"error": "'…' of <person> failed."}
    assert veiled_line("plain 'Salaries.xlsx'", VEIL) == "plain '…'"


def test_only_the_end_of_a_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"{number}\n" for number in range(10_000)))
    assert last_lines(path, count=3) == ["9997", "9998", "9999"]


def test_settings_show_choices_and_hide_the_rest() -> None:
    settings = load_settings(
        redis_url="redis://:secret-1@h/0",
        log_level="debug",
        accounts=[
            {"name": "Contoso", "tenant_id": "t", "client_id": "c", "client_secret": "secret-2"}
        ],
    )
    told = shown(settings, VEIL)
    assert told["redis_url"] == "(secret)"
    assert told["log_level"] == "debug"
    assert told["accounts"][0]["name"] == "(set)"
    assert told["accounts"][0]["client_secret"] == "(secret)"
    with_names = json.dumps(shown(settings, Veil({}, with_names=True)))
    assert "Contoso" in with_names
    assert "secret-" not in with_names


def test_a_bundle_is_for_its_owner_and_replaces_nothing(tmp_path: Path) -> None:
    bundle = Bundle()
    bundle.add("a.txt", "A", "the letter A")
    bundle.leave_out("The letter B.")
    path = tmp_path / "b.zip"
    bundle.write(path)
    assert path.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(path) as archive:
        assert archive.read("a.txt") == b"A"
        assert "The letter B." in archive.read("contents.txt").decode()
    with pytest.raises(FileExistsError):
        bundle.write(path)


def test_sentences_of_ours_lose_nothing() -> None:
    """What every reason means and asks for is read by whoever gets a bundle."""
    for reason in Reason:
        for text in (meaning_of(reason), remedy_of(reason)):
            assert "…" not in VEIL.text(re.sub(r"'[^']*'", "", text)), text
