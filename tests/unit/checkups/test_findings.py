from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.examination import CatalogState, Integrity, look
from drivefeed.cli.checkups_settings import settings_findings
from drivefeed.domain.gate import Marks
from drivefeed.outbound import Outbound
from drivefeed.queue.examination import RedisState
from drivefeed.services.checkups.catalogs import catalog_findings
from drivefeed.services.checkups.finding import Colour, Finding
from drivefeed.services.checkups.folders import look_at_folder
from drivefeed.services.checkups.network import clock_finding
from drivefeed.services.checkups.queues import delivery_findings, redis_findings
from drivefeed.services.checkups.reach import Obstacle, reach
from drivefeed.services.gate import Place
from drivefeed.settings import Settings
from drivefeed.system import SystemClock
from support.clock import ManualClock
from support.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from pathlib import Path

GOOD = RedisState(
    where="redis:6379",
    version="8.0.0",
    is_recent=True,
    policy="noeviction",
    may_configure=True,
    aof=True,
    aof_failed=False,
    used_bytes=10,
    most_bytes=0,
    generation="1",
    counts={},
    paused=[],
)


@pytest.mark.parametrize(
    ("change", "part", "colour"),
    [
        ({"is_recent": False, "version": "5.0"}, "queue", Colour.RED),
        ({"policy": "allkeys-lru"}, "redis policy", Colour.RED),
        ({"policy": "allkeys-lru", "may_configure": False}, "redis policy", Colour.YELLOW),
        ({"aof": False}, "redis persistence", Colour.YELLOW),
        ({"aof_failed": True}, "redis persistence", Colour.RED),
        ({"generation": None}, "redis sentinel", Colour.YELLOW),
        ({"most_bytes": 100, "used_bytes": 91}, "redis memory", Colour.YELLOW),
        ({"paused": ["transfer"]}, "queue paused", Colour.YELLOW),
    ],
)
def test_each_fault_of_redis_is_one_finding(
    change: dict[str, object], part: str, colour: Colour
) -> None:
    assert {one.colour for one in redis_findings(GOOD, sent=True)} == {Colour.GREEN}
    found = list(redis_findings(replace(GOOD, **change), sent=True))  # type: ignore[arg-type]
    assert [(one.part, one.colour) for one in found if one.colour is not Colour.GREEN] == [
        (part, colour)
    ]
    assert all(one.remedy for one in found if one.colour is not Colour.GREEN)


def test_deliveries_that_wait_are_judged_while_a_daemon_runs() -> None:
    def colour(late: int, *, is_running: bool) -> Colour:
        waiting = {"poll": (3, 1_000_000)}
        now = 1_000_000 + late
        (one,) = delivery_findings(waiting, now=now, is_running=is_running)
        return one.colour

    minute = 60_000
    assert colour(9 * minute, is_running=True) is Colour.GREEN
    assert colour(11 * minute, is_running=True) is Colour.YELLOW
    assert colour(61 * minute, is_running=True) is Colour.RED
    assert colour(61 * minute, is_running=False) is Colour.GREEN


@pytest.mark.parametrize(
    ("ahead", "colour"),
    [
        (0, "green"),
        (119_000, "green"),
        (-121_000, "yellow"),
        (299_000, "yellow"),
        (-301_000, "red"),
    ],
)
def test_a_clock_is_yellow_from_two_minutes_on_and_red_from_five(ahead: int, colour: str) -> None:
    assert clock_finding("graph.example", ahead).colour == colour


def test_a_large_catalog_is_searched_for_damage_no_longer_than_there_is_time(
    tmp_path: Path,
) -> None:
    import sqlite3
    from contextlib import closing

    path = tmp_path / "catalog.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE alembic_version (version_num TEXT)")
        database.execute("INSERT INTO alembic_version VALUES ('0002')")
        database.execute("CREATE TABLE big (value TEXT)")
        database.executemany("INSERT INTO big VALUES (?)", [("x" * 500,)] * 20_000)
        database.commit()
    assert look(f"sqlite:///{path}", ManualClock(), seconds=0).integrity is Integrity.NOT_FINISHED
    assert look(f"sqlite:///{path}", ManualClock()).integrity is Integrity.GOOD
    (one,) = catalog_findings(
        CatalogState(migration="1", newest="1", integrity=Integrity.NOT_FINISHED), "it"
    )
    assert one.colour is Colour.GREEN
    assert "too large" in one.words


def test_a_folder_with_little_room_is_yellow(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "yet"

    def look(low: int, high: int) -> Finding:
        return look_at_folder(Place("data folder", folder, Marks(low, high)), "x")

    assert look(1, 1).colour is Colour.GREEN
    assert look(1, 2**60).colour is Colour.YELLOW
    holds = look(2**60, 2**60)
    assert holds.colour is Colour.YELLOW
    assert "nothing new is downloaded" in holds.words
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk, which Linux can do")
def test_a_full_disk_is_red(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    assert unshare, "unshare (util-linux) is needed to mount a small disk for this test alone"
    code = (
        "import sys; from pathlib import Path;"
        "from drivefeed.domain.gate import Marks;"
        "from drivefeed.services.gate import Place;"
        "from drivefeed.services.checkups.folders import look_at_folder;"
        "place = Place('data folder', Path(sys.argv[1]), Marks(2**21, 2**22));"
        "print(look_at_folder(place, 'x').colour)"
    )
    script = f'mount -t tmpfs -o size=1m tmpfs "$1" && exec "{sys.executable}" -c "$2" "$1"'
    import os

    spaces = ["--mount"] if os.geteuid() == 0 else ["--mount", "--map-root-user"]
    done = subprocess.run(
        [unshare, *spaces, "sh", "-c", script, "sh", str(tmp_path), code],
        env=environment(PYTHONPATH=str(REPOSITORY / "src")),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "red"


async def test_a_name_that_nobody_knows_is_told_as_such() -> None:
    got = await reach("https://nobody.invalid/secret/path", Outbound(), SystemClock())
    assert got.obstacle is Obstacle.NAME
    assert "secret" not in got.words
    assert (got.host, got.ahead_ms) == ("nobody.invalid", None)


_ACCOUNT = {"name": "main", "tenant_id": "t", "client_id": "c", "client_secret": "s"}
_FOLDER = {"account": "main", "drive_id": "b!x", "folder": "Lab"}


@pytest.mark.parametrize(
    ("values", "colour", "words", "remedy"),
    [
        ({"accounts": [_ACCOUNT, _ACCOUNT]}, Colour.RED, "2 accounts are called", "its own name"),
        (
            {"connections": [_FOLDER, _FOLDER | {"folder": "/Lab/"}]},
            Colour.YELLOW,
            "2 connections name folder 'Lab'",
            "Leave one",
        ),
        (
            {"s3": {"bucket": "b", "access_key": "k"}},
            Colour.RED,
            "only one is set",
            "Set both, or neither",
        ),
        (
            {"secret_key": "k", "secret_key_command": "cat k"},
            Colour.YELLOW,
            "only secret_key is used",
            "Leave one",
        ),
        (
            {"qdrant_url": "http://index.example:6333", "qdrant_api_key": "k"},
            Colour.YELLOW,
            "travels to index.example without encryption",
            "Use https",
        ),
    ],
)
def test_settings_that_contradict_themselves(
    values: dict[str, object], colour: Colour, words: str, remedy: str, tmp_path: Path
) -> None:
    (one,) = settings_findings(Settings(data_dir=tmp_path / "none", **values), None, {})
    assert one.colour is colour
    assert words in one.words
    assert remedy in one.remedy


def test_variables_that_are_no_settings_are_named(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "none")
    environ = {"DRIVEFEED_REDIS_ULR": "redis://x", "DRIVEFEED_LOG_LEVEL": "info", "PATH": "/bin"}
    (one,) = settings_findings(settings, None, environ)
    assert (one.colour, one.subject) == (Colour.YELLOW, "DRIVEFEED_REDIS_ULR")
    (fine,) = settings_findings(settings, None, {"DRIVEFEED_EXTRACTION__OCR": "1"})
    assert fine.colour is Colour.GREEN
