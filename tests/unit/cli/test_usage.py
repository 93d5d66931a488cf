"""``usage`` as it is typed."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.engine import open_catalog, sqlite_url
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from support.commands import run_command, said_in_frame
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two organizations; the first was charged 5 and 3 pages."""
    home = tmp_path_factory.mktemp("usage")

    async def make() -> None:
        catalog = await open_catalog(
            new_catalog(home / "catalog.sqlite"),
            clock=ManualClock(),
            ids=CountedIds(),
            checkpoint=no_checkpoint,
        )
        rig = await Rig.make(catalog, name="acme")
        await rig.connect()
        await rig.scan()
        names = {"a": "=SUM(1).txt", "b": "plain.txt"}
        files = [file(key, "docs", content=key, name=name) for key, name in names.items()]
        await rig.enumerate([ROOT, folder("docs"), *files])
        await rig.bring_live("a", pages=5)
        await rig.bring_live("b", pages=3)
        await ensure_org(catalog, "other")
        await catalog.aclose()

    asyncio.run(make())
    return home


def usage(home: Path, *words: str, code: int = 0) -> str:
    done = run_command("--data", str(home), "usage", *words, cwd=home, ok=(code,))
    return done.stdout + done.stderr


def answer(home: Path, *words: str, code: int = 0) -> Any:
    return json.loads(usage(home, *words, "--json", code=code))


def test_a_limit_is_set_told_and_taken_away(installation: Path) -> None:
    assert usage(installation).splitlines() == [
        "acme: 8 pages charged so far; there is no limit.",
        "other: 0 pages charged so far; there is no limit.",
    ]
    said = usage(installation, "limit", "10000", "--per", "month", "--org", "acme")
    assert said.startswith("acme: ")
    assert " of 10,000 pages a month used, " in said
    assert "counted anew on " in said
    (one,) = answer(installation, "--org", "acme")
    assert (one["limit"], one["period"], one["time_zone"]) == (10_000, "month", "UTC")
    assert one["resets_at"] > one["since"] > 0
    assert answer(installation, "limit", "10", "--org", "acme")["free"] == 2
    assert (
        "acme: 8 of 10 pages used, 2 free."
        in run_command("--data", str(installation), "status", cwd=installation).stdout
    )
    assert answer(installation, "limit", "--none", "--org", "acme")["free"] is None
    assert "Say either" in usage(installation, "limit", "--org", "acme", code=2)
    assert "choose from total, month, day" in usage(
        installation, "limit", "1", "--per", "week", "--org", "acme", code=2
    )
    assert "name one with --org" in usage(installation, "limit", "1", code=3)


def test_a_statement_is_a_table_csv_and_json(installation: Path) -> None:
    table = usage(installation, "statement", "--org", "acme", "--to", "2027-02-01")
    assert "plain.txt" in table
    assert "8 pages in all." in table
    rows = list(csv.DictReader(io.StringIO(usage(installation, "statement", "--csv"))))
    assert [(row["pages"], row["kind"]) for row in rows[:2]] == [("5", "charge"), ("3", "charge")]
    assert rows[0]["document"] == "'=SUM(1).txt", "a spreadsheet must not run it"
    assert rows[0]["at"].endswith("+00:00")
    entries = answer(installation, "statement", "--connection", "docs")
    assert [one["document"] for one in entries[:2]] == ["=SUM(1).txt", "plain.txt"]
    assert answer(installation, "statement", "--org", "other") == []
    assert (
        answer(installation, "statement", "--from", "2027-02-01T00:00Z", "--to", "2028-01-01") == []
    )
    assert "is no date" in usage(installation, "statement", "--from", "soon", code=2)


def test_a_correction_needs_a_reason_and_the_books_still_agree(installation: Path) -> None:
    entry = answer(installation, "statement", "--org", "acme")[0]["number"]
    made = answer(
        installation,
        *("correct", "--pages", "-2", "--reason", "two blank pages"),
        *("--entry", str(entry), "--org", "acme"),
    )
    assert made["usage"]["total"] == 6
    last = answer(installation, "statement", "--org", "acme")[-1]
    assert (last["kind"], last["pages"], last["reason"]) == ("correction", -2, "two blank pages")
    assert f"correction of entry {entry}: two blank pages" in usage(installation, "statement")
    assert "no charge number 99" in usage(
        installation,
        *("correct", "--pages", "1", "--reason", "x", "--entry", "99", "--org", "acme"),
        code=3,
    )
    said = usage(installation, "recount")
    assert "acme: 2 charges, 6 pages used, 0 held." in said
    assert said.count("✓") == 2
    assert [one["holds"] for one in answer(installation, "recount")] == [True, True]


def test_a_recount_of_wrong_books_is_a_no(installation: Path) -> None:
    async def bend(pages: int) -> None:
        catalog = await open_catalog(
            sqlite_url(installation / "catalog.sqlite"),
            clock=ManualClock(),
            ids=CountedIds(),
            checkpoint=no_checkpoint,
        )
        async with catalog.write() as connection:
            await connection.exec_driver_sql(
                f"UPDATE orgs SET pages_used = pages_used + {pages} WHERE name = 'acme'"
            )
        await catalog.aclose()

    asyncio.run(bend(1))
    assert "Pages used: the counter says" in usage(installation, "recount", code=1)
    assert [one["holds"] for one in answer(installation, "recount", code=1)] == [False, True]
    asyncio.run(bend(-1))


def test_an_interval_ends_after_it_begins(tmp_path: Path) -> None:
    for end in ("2027-01-01", "2027-02-01"):
        typed = f"usage statement --from 2027-02-01 --to {end}"
        done = run_command(*typed.split(), cwd=tmp_path, ok=[2])
        assert "--to is not later than --from" in said_in_frame(done.stderr)


def test_no_limit_has_no_period(tmp_path: Path) -> None:
    for more in ("--zone Mars/Olympus", "--per month"):
        done = run_command(*f"usage limit --none {more}".split(), cwd=tmp_path, ok=[2])
        assert "leave --per and --zone out" in said_in_frame(done.stderr)


def test_a_connection_that_never_was_has_no_statement(installation: Path) -> None:
    asked = ("--data", str(installation), "usage", "statement", "--connection", "nosuch")
    done = run_command(*asked, cwd=installation, ok=[3])
    assert "There is no connection 'nosuch'" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        "usage limit 99999999999999999999",
        "usage limit 3000000000",
        "usage correct --pages 9223372036854775807 --reason slip",
        "usage correct --pages -3000000000 --reason slip",
        "usage correct --pages 3 --entry 99999999999999999999 --reason slip",
    ],
)
def test_numbers_that_no_database_could_add_up_are_refused(tmp_path: Path, words: str) -> None:
    done = run_command("--data", str(tmp_path / "data"), *words.split(), cwd=tmp_path, ok=[2])
    assert "1000000000" in done.stderr.replace("\n", "")
