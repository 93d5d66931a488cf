"""drivefeed over Postgres: a folder becomes searchable, through a kill and a restart of it all."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from support.evidence import files_below, sha256
from support.postgres_daemon import PostgresDaemon
from support.processes import until
from support.sim import Sim

if TYPE_CHECKING:
    from pathlib import Path

    from support.postgres import PostgresServer

FILES = 12


@pytest.mark.slow
def test_a_folder_becomes_searchable_on_postgres(
    tmp_path: Path, own_postgres: PostgresServer
) -> None:
    folder = tmp_path / "OneDrive"
    for number in range(FILES):
        path = folder / f"Shelf {number % 3}/note {number:02}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Note {number}: the lighthouse keeper counts to {number * 17}.\n")
    url = own_postgres.empty_database()
    sim = Sim(folder, tmp_path / "graphsim")
    sim.start()
    daemon = PostgresDaemon(tmp_path, sim, url, poll=0.3)
    try:
        installed = daemon.json("init", "--org", "test")
        assert installed["catalog"] == "in Postgres"
        daemon.start()
        _kill_while_it_imports(daemon)
        daemon.start()
        _restart_while_it_imports(daemon, own_postgres)
        daemon.wait_for_rest(files=FILES, seconds=120)
        _compare(daemon, folder)
        (hit,) = daemon.search("lighthouse keeper counts to 187", limit=1)
        assert "note 11.txt" in json.dumps(hit)
        _ask_everything(daemon)
        certificate = daemon.json("verify")
        assert certificate["holds"], certificate
        (catalog,) = [one for one in daemon.json("doctor", ok=(0, 1)) if one["part"] == "catalog"]
        assert catalog["colour"] == "green"
        assert catalog["words"].startswith("Postgres ")
        daemon.stop()
    finally:
        daemon.end()
        sim.stop()


def _kill_while_it_imports(daemon: PostgresDaemon) -> None:
    until(
        lambda: daemon.rows("SELECT 1 FROM imports WHERE state = 'stored' OR state = 'settled'"),
        seconds=60,
        what=daemon.last_words,
    )
    daemon.kill()
    daemon.assert_nothing_left()


def _restart_while_it_imports(daemon: PostgresDaemon, server: PostgresServer) -> None:
    until(
        lambda: daemon.rows("SELECT 1 FROM reminders WHERE owner IS NOT NULL"),
        seconds=60,
        what=daemon.last_words,
    )
    server.kill()
    server.start()


def _ask_everything(daemon: PostgresDaemon) -> None:
    """Commands whose answers are counts, sums and lists of the database."""
    (shown,) = daemon.json("status")
    assert f'"searchable": {FILES}' in json.dumps(shown)
    assert len(daemon.json("imports")) == FILES
    assert "note 01.txt" in daemon.command("why", "note 01.txt")
    daemon.command("support-bundle")


def _compare(daemon: PostgresDaemon, folder: Path) -> None:
    """Compare files, objects, points and charges; drivefeed is not asked."""
    live = daemon.rows(
        """
        SELECT items.name, org_id || '/' || documents.id || '/' || live_import_id || '/'
                 || live_round AS key, live_import_id, live_round
        FROM documents JOIN items USING (drive_id, item_id) WHERE live_import_id IS NOT NULL
        """
    )
    on_disk = {path.name: path for path in files_below(folder).values()}
    assert {row["name"] for row in live} == on_disk.keys()
    objects = daemon.objects()
    assert {row["key"] for row in live} == objects.keys()
    for row in live:
        assert objects[row["key"]].read_bytes() == on_disk[row["name"]].read_bytes()
    rounds = {(row["live_import_id"], row["live_round"]): (True, 1) for row in live}
    assert daemon.points() == rounds
    ledger = daemon.ledger()
    assert Counter(one.sha256 for one in ledger) == Counter(
        sha256(path) for path in on_disk.values()
    )
    (org,) = daemon.rows("SELECT sum(pages_used)::int AS pages FROM orgs")
    assert org["pages"] == sum(one.pages for one in ledger)
