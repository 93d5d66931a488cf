"""Every command against a demo that has ended: answers, JSON, exit codes, and plain lines."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from support.daemon import COMMAND

if TYPE_CHECKING:
    from integration.cli.conftest import CommandLine

ANSI = re.compile(r"\x1b|[━│┃┏└╭]")
LOOKING = (
    ("status",),
    ("imports",),
    ("why", "Cranes.md"),
    ("search", "harness"),
    ("removals",),
    ("doctor",),
    ("queues",),
    ("version",),
    ("--help",),
    ("demo", "--help"),
)


def test_the_demo_without_a_terminal_prints_plain_lines(finished: CommandLine) -> None:
    printed: str = finished.first_run  # type: ignore[attr-defined]  # set by the fixture

    assert not ANSI.search(printed)
    assert "5 found = 3 searchable + 1 failed + 1 skipped" in printed
    assert "Source, catalog, store and index agree; extra = 0." in printed
    assert "1 entry of the folder could not be part of a drive:" in printed
    assert "Shortcut.md: it is a symbolic link" in printed
    assert re.search(r"Broken.docx failed: corrupt: .* → Open it", printed)


@pytest.mark.parametrize("words", LOOKING[:-2], ids=" ".join)
def test_what_is_no_terminal_gets_no_colours_and_no_boxes(
    finished: CommandLine, words: tuple[str, ...]
) -> None:
    answer = finished(*words)

    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    assert answer.stdout.strip()
    assert not ANSI.search(answer.stdout)


def test_status_adds_up(finished: CommandLine) -> None:
    (one,) = finished.json("status")

    assert one["found"] == 5
    assert one["found"] == sum(
        one[name] for name in ("searchable", "in_progress", "stale", "held", "failed", "skipped")
    )
    assert (one["searchable"], one["failed"], one["skipped"]) == (3, 1, 1)
    assert one["percent"] == 100
    reasons = {row["reason"]: row for row in one["reasons"]}
    assert reasons["corrupt"]["remedy"]
    assert reasons["empty_file"]["standing"] == "skipped"
    assert "1 file failed, corrupt: " in finished("status").stdout


def test_imports_are_one_line_each_with_whole_paths(finished: CommandLine) -> None:
    lines = finished("imports").stdout.splitlines()

    assert len(lines) == 6
    assert any(line.startswith("Harbour/Ferries.txt ") and "searchable" in line for line in lines)
    assert any(line.startswith("Broken.docx ") and "failed corrupt" in line for line in lines)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--state", "failed"), ["Broken.docx"]),
        (("--state", "settled"), ["Harbour/Cranes.md", "Harbour/Ferries.txt", "Prices.csv"]),
        (("--reason", "empty_file"), ["Nothing.txt"]),
        (("--limit", "1"), None),
    ],
)
def test_imports_can_be_narrowed(
    finished: CommandLine, options: tuple[str, ...], names: list[str] | None
) -> None:
    found = [one["path"] for one in finished.json("imports", *options)]

    assert found == names if names is not None else len(found) == 1


def test_why_tells_the_steps_in_order(finished: CommandLine) -> None:
    (one,) = finished.json("why", "cranes.md")
    told = finished("why", "Harbour/Cranes.md").stdout

    assert one["path"] == "Harbour/Cranes.md"
    assert [e["event"] for e in one["versions"][0]["events"]][:3] == [
        "admitted",
        "stored",
        "submitting",
    ]
    steps = ("seen at the source", "copied to the object store", "read and indexed")
    assert [told.index(step) for step in steps] == sorted(told.index(step) for step in steps)
    assert "searchable" in told


def test_why_of_a_file_that_failed_names_reason_and_remedy(finished: CommandLine) -> None:
    told = finished("why", "Broken.docx").stdout

    assert "corrupt: Its content is damaged" in told
    assert "→ Open it in its own application" in told


@pytest.mark.parametrize("words", ["Harbour", "harbour/", "crane"])
def test_why_of_a_folder_or_a_part_of_a_name_offers_files(
    finished: CommandLine, words: str
) -> None:
    answer = finished("why", words)

    assert answer.returncode == 1
    assert "Did you mean" in answer.stdout
    assert "Harbour/Cranes.md" in answer.stdout


def test_search_finds_and_shows_which_words_match(finished: CommandLine) -> None:
    first = finished.json("search", "harness for the crane")[0]

    assert first["path"] == "Harbour/Cranes.md"
    assert {"score", "page", "snippet", "highlights", "web_url", "document_id"} <= first.keys()
    marked = {first["snippet"][start:end].lower() for start, end in first["highlights"]}
    assert {"crane", "harness"} <= marked
    assert "1. Harbour/Cranes.md" in finished("search", "harness").stdout


def test_search_takes_several_words_and_refuses_a_text(finished: CommandLine) -> None:
    assert "Cranes.md" in finished("search", "harness", "rope").stdout
    refused = finished("search", "x" * 501)
    assert refused.returncode == 2
    assert "at most 500 characters" in refused.stderr


def test_an_index_that_was_lost_is_not_taken_for_an_empty_one(finished: CommandLine) -> None:
    (index,) = (finished.home / "drivefeed-demo").glob("data-*/index")
    kept = index.rename(index.with_name("index-kept"))
    try:
        answer = finished.afresh("search", "harness")
    finally:
        shutil.rmtree(index, ignore_errors=True)
        kept.rename(index)
    assert answer.returncode == 3
    assert "reindex --anew" in answer.stderr


def test_output_that_cannot_be_written_is_a_sentence(finished: CommandLine) -> None:
    for command in ("status --json", "imports", "version"):
        answer = finished.run(["sh", "-c", f"{shlex.join(COMMAND)} {command} >/dev/full"])
        assert answer.returncode == 3
        assert answer.stderr == (
            "drivefeed: The output cannot be written: No space left on device.\n"
        )


def test_a_demo_does_not_serve_its_own_data(finished: CommandLine) -> None:
    pointer = finished.home / "drivefeed-demo" / "last"
    before = pointer.read_text()
    answer = finished.afresh("demo", ".", "--once")
    assert answer.returncode == 3
    assert "it would import its own files" in answer.stderr
    assert pointer.read_text() == before


def test_doctor_names_each_part_with_a_remedy_unless_green(finished: CommandLine) -> None:
    findings = {one["part"]: one for one in finished.json("doctor")}

    assert {"disk", "catalog", "daemon", "queue", "store", "index", "account"} <= findings.keys()
    assert findings["store"]["colour"] == "green"
    assert findings["daemon"]["colour"] == "yellow"
    assert all(one["remedy"] for one in findings.values() if one["colour"] != "green")


def test_pause_resume_and_retry_say_what_they_did(finished: CommandLine) -> None:
    assert finished.json("pause") == {"paused": ["Docs"]}
    assert json.loads(finished.afresh("status", "--json").stdout)[0]["paused"] is True
    assert finished.json("resume", "docs") == {"resumed": ["Docs"]}
    assert json.loads(finished.afresh("status", "--json").stdout)[0]["paused"] is False
    assert finished.json("pause", "Elsewhere", code=1) == {"paused": []}
    assert finished.json("retry", "--reason", "encrypted") == {"retried": [], "connections": []}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("why", "Never seen.txt"), 1),
        (("retry", "Never seen.txt"), 1),
        (("removals", "Elsewhere"), 1),
        (("imports", "--state", "serchable"), 2),
        (("imports", "--reason", "because"), 2),
        (("removals", "--approve", "--discard"), 2),
        (("search",), 2),
        (("nonsense",), 2),
        (("board-env",), 3),
        (("verify",), 3),
        (("demo", "no-such-folder"), 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_exit_codes_mean_something(
    finished: CommandLine, words: tuple[str, ...], code: int
) -> None:
    answer = finished(*words)

    assert answer.returncode == code, answer.stdout + answer.stderr
    assert "Traceback" not in answer.stderr
    if code == 3:
        assert answer.stdout == ""
        assert re.fullmatch(r"drivefeed: [^\n]+[.]\n", answer.stderr), answer.stderr


def test_help_tells_the_exit_codes_of_every_command(finished: CommandLine) -> None:
    for words in ((), ("status",), ("verify",), ("demo",)):
        printed = finished(*words, "--help").stdout
        assert "3 something stands in the way" in " ".join(printed.split())


def test_queues_are_those_of_the_table(finished: CommandLine) -> None:
    names = [one["name"] for one in finished.json("queues")["queues"]]

    assert names[:3] == ["discover", "admit", "transfer"]
    assert all(name in finished("queues").stdout for name in names)


def test_version_is_the_same_for_people_and_programs(finished: CommandLine) -> None:
    assert finished("version").stdout == f"drivefeed {finished.json('version')['version']}\n"


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        ("version", "sqlalchemy bullmq redis httpx boto3 fastapi numpy pydantic_settings rich"),
        ("--help", "sqlalchemy bullmq redis httpx boto3 fastapi numpy pydantic_settings"),
        ("status", "alembic bullmq redis httpx boto3 fastapi numpy msgraph_core"),
    ],
)
def test_a_command_loads_what_it_needs(finished: CommandLine, words: str, unneeded: str) -> None:
    answer = finished.run([sys.executable, "-c", _LOADED.format(words, unneeded)])

    assert answer.returncode == 0
    assert answer.stderr == ""


_LOADED = """
import sys
sys.argv = ["drivefeed", "{}"]
from drivefeed.cli import main
try:
    main()
finally:
    sys.stderr.write(" ".join(sorted(set("{}".split()) & sys.modules.keys())))
"""
