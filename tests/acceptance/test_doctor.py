"""Row 7: each of the doctor's checks broken in turn, and cured by the remedy it names."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from acceptance.installation import WITHOUT_DAEMON, Installation, ill, installed
from drivefeed.catalog.engine import migrate, newest_migration, sqlite_url
from drivefeed.cli import checkups_parts
from graphsim.tenancy import DEFAULT_ROLES
from integration.graph_source.kit import sim_state
from support.authority import Authority
from support.door import daemon_door
from support.receiver import running_receiver
from support.threaded_sim import threaded_sim
from support.valkey import ValkeyServer, free_port, valkey_server, valkey_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from graphsim.serving import GraphSim

__all__ = ["valkey_server", "valkey_url"]

_DAY_MS = 86_400_000
Broken = set[tuple[str, str]]


@pytest.fixture(scope="module")
def sim() -> Iterator[GraphSim]:
    with threaded_sim(state=sim_state()) as running:
        yield running


@pytest.fixture(scope="module")
def master(
    tmp_path_factory: pytest.TempPathFactory, sim: GraphSim, valkey_server: ValkeyServer
) -> Iterator[Installation]:
    with installed(tmp_path_factory.mktemp("installed"), sim, valkey_server.url) as made:
        yield made


@pytest.fixture
def here(master: Installation, tmp_path: Path, valkey_url: str) -> Installation:
    """A copy of the installation that a test may break."""
    return master.copied_to(tmp_path / "copy")


# Each case breaks one thing, yields what the doctor must find beside the missing daemon with a
# word of its remedy, and cures it the way the remedy says.
Case = "Callable[[Installation, GraphSim, ValkeyServer], Iterator[tuple[Broken, str]]]"


def a_value_that_cannot_be(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.settings('log_level = "loud"')
    yield {("red", "settings")}, "Correct these lines"
    here.settings()


def a_stage_that_is_none(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.settings("[concurrency]", "transfre = 8")
    yield {("red", "settings")}, "Correct these lines"
    here.settings("[concurrency]", "transfer = 8")


def values_that_contradict(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.settings('qdrant_api_key = "key-that-nobody-uses"')
    yield {("yellow", "settings")}, "unset the key"
    here.settings()


def secrets_for_everybody(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.config.chmod(0o644)
    yield {("red", "settings")}, "chmod 600"
    found = ill(here.doctor())[("red", "settings")]
    command = found.removeprefix("Run '").removesuffix("'.")
    subprocess.run(shlex.split(command), check=True)


def an_open_data_folder(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.data.chmod(0o755)
    yield {("yellow", "settings")}, "chmod 700"
    here.data.chmod(0o700)


def no_temporary_folder(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    with patch.object(tempfile, "tempdir", str(here.config)):
        yield {("red", "disk")}, "TMPDIR"


def a_file_that_is_no_catalog(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    kept = here.catalog.read_bytes()
    here.catalog.write_bytes(b"this is no database" * 500)
    yield {("red", "catalog")}, "restore it from a backup"
    here.catalog.write_bytes(kept)


def a_damaged_catalog(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    kept = here.catalog.read_bytes()
    # From the third page on: header and schema can be read, and what is below cannot.
    page = 4096
    here.catalog.write_bytes(kept[: 40 * page] + b"\x5a" * (20 * page) + kept[60 * page :])
    yield {("red", "catalog")}, "restore it from a backup"
    here.catalog.write_bytes(kept)


def a_catalog_of_an_older_version(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.catalog.rename(here.home / "kept")
    migrate(sqlite_url(here.catalog), to="0001")
    yield {("red", "catalog")}, "it migrates"
    here("status")  # opening it is what 'drivefeed up' does as well
    assert here.doctor()[3]["colour"] == "green"
    (here.home / "kept").replace(here.catalog)


def a_catalog_of_a_newer_version(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.sql("UPDATE alembic_version SET version_num = '9001'")
    yield {("red", "catalog")}, "Run that version"
    here.sql("UPDATE alembic_version SET version_num = ?", newest_migration())


def another_journal(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.sql("PRAGMA journal_mode = DELETE")
    yield {("yellow", "catalog journal")}, "it sets WAL"
    here("status")


def a_lost_key(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    key = here.data / "secret.key"
    key.rename(here.home / "kept")
    shutil.copy(here.home / "kept", key)
    key.write_text("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n")
    yield {("red", "secret key")}, "Bring back the key"
    (here.home / "kept").replace(key)


def a_key_file_for_everybody(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    key = here.data / "secret.key"
    here(*ANOTHER_ACCOUNT, "--no-test", typed="another-secret")
    key.chmod(0o644)
    found = [one for one in here.doctor() if one["part"] == "secret key"]
    assert len(found) == 1, "the same for every account"
    assert "can be read by others than its owner." in found[0]["words"]
    yield {("red", "secret key")}, "chmod 600"
    command = found[0]["remedy"].removeprefix("Run '").partition("'")[0]
    subprocess.run(shlex.split(command), check=True)
    here("account", "remove", "idle")


def an_older_key(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    key = here.data / "secret.key"
    key.write_text("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n" + key.read_text())
    yield {("yellow", "secret key")}, "drivefeed secrets rotate"
    here("secrets", "rotate")


def an_account_that_nobody_uses(
    here: Installation, sim: GraphSim, *_: object
) -> Iterator[tuple[Broken, str]]:
    here(*ANOTHER_ACCOUNT, typed=sim.endpoints.client_secret)
    yield {("yellow", "account use")}, "remove the account"
    here("account", "remove", "idle")


def settings_of_another_model(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.doctor()  # makes the index
    here.settings("[embedding]", 'provider = "ollama"', 'model = "another"', "dimension = 3")
    yield {("yellow", "embedding")}, "put the former setting back"
    here.settings()


def a_proxy_that_is_none(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.settings("[outbound]", 'https_proxy = "http://proxy.example:99999"')
    yield {("red", "network")}, "Correct the proxies"
    here.settings()


def no_redis(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    url, here.redis_url = here.redis_url, f"redis://127.0.0.1:{free_port()}/0"
    here.settings()
    yield {("red", "queue")}, "correct its URL"
    here.redis_url = url
    here.settings()


def a_redis_that_evicts(
    here: Installation, _: GraphSim, valkey: ValkeyServer
) -> Iterator[tuple[Broken, str]]:
    with valkey.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        yield {("red", "redis policy")}, "CONFIG SET maxmemory-policy noeviction"
        client.config_set("maxmemory-policy", "noeviction")


def a_redis_that_forgets(
    here: Installation, _: GraphSim, valkey: ValkeyServer
) -> Iterator[tuple[Broken, str]]:
    with valkey.client() as client:
        client.config_set("appendonly", "no")
        yield {("yellow", "redis persistence")}, "CONFIG SET appendonly yes"
        client.config_set("appendonly", "yes")


def a_redis_that_was_emptied(
    here: Installation, _: GraphSim, valkey: ValkeyServer
) -> Iterator[tuple[Broken, str]]:
    here.sql("UPDATE reminders SET sent_at = 1")
    yield {("yellow", "redis sentinel")}, "it sends everything again"
    with valkey.client() as client:  # as the relay does
        client.set("drivefeed:drivefeed:sentinel", "1")


def a_paused_queue(
    here: Installation, _: GraphSim, valkey: ValkeyServer
) -> Iterator[tuple[Broken, str]]:
    with valkey.client() as client:
        client.hset("drivefeed:transfer:meta", "paused", "1")
        yield {("yellow", "queue paused")}, "Resume these queues"
        client.hdel("drivefeed:transfer:meta", "paused")


def a_store_that_cannot_be_written(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    objects = here.data / "objects"
    shutil.rmtree(objects, ignore_errors=True)
    objects.write_text("a file where a folder should be")
    yield {("red", "store")}, "Repair the store"
    objects.unlink()


def an_index_that_was_emptied(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.sql(
        "INSERT INTO documents (id, org_id, source, name, live_import_id, live_round, created_at)"
        " SELECT 'lost', id, 'drive', 'lost.txt', 'lost', 1, 1 FROM orgs"
    )
    yield {("red", "index")}, "reindex --anew"
    here.sql("DELETE FROM documents WHERE id = 'lost'")


def an_index_of_another_model(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.doctor()  # makes the index
    identity = here.data / "index" / "identity.json"
    kept = identity.read_text()
    identity.write_text(json.dumps(json.loads(kept) | {"model": "another", "dimension": 3}))
    yield {("red", "index")}, "the settings that name it"
    identity.write_text(kept)


def nobody_at_graph(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.sql("UPDATE accounts SET graph_url = 'http://127.0.0.1:' || ? || '/v1.0'", free_port())
    yield {("red", "network")}, "firewall"
    here.sql("UPDATE accounts SET graph_url = ?", GRAPH[0])


def a_wrong_authority(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    other = Authority(here.home / "authority")
    here.sql("UPDATE accounts SET ca_file = ?", str(other.ca))
    yield {("red", "trust")}, "outbound.ca_file"
    here.sql("UPDATE accounts SET ca_file = ?", GRAPH[1])


def an_authority_that_is_not_there(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.sql("UPDATE accounts SET ca_file = '/nowhere/ca.pem'")
    yield {("red", "trust")}, "the account's CA file"
    here.sql("UPDATE accounts SET ca_file = ?", GRAPH[1])


def a_proxy_that_is_down(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    with running_receiver() as proxy:
        channel = (
            '[[notices]]\nname = "chat"\nkind = "slack"\nurl = "http://hooks.invalid/T0/secret"\n'
        )
        here.settings(channel, f'[outbound]\nhttp_proxy = "http://127.0.0.1:{free_port()}"')
        yield {("red", "proxy")}, "outbound.https_proxy"
        here.settings(channel, f'[outbound]\nhttp_proxy = "{proxy.url}"')
        assert ill(here.doctor()).keys() == WITHOUT_DAEMON
        assert [one.path for one in proxy.received] == ["http://hooks.invalid/"]
    here.settings()


def no_mail_server(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.settings(
        *("[[notices]]", 'name = "mail"', 'kind = "smtp"', 'host = "127.0.0.1"'),
        *(f"port = {free_port()}", 'tls = "none"', 'from = "a@b.invalid"', 'to = ["c@d.invalid"]'),
    )
    yield {("red", "network")}, "Correct host and port"
    here.settings()


def a_clock_three_minutes_off(
    _: Installation, sim: GraphSim, *__: object
) -> Iterator[tuple[Broken, str]]:
    sim.skew = 180
    yield {("yellow", "clock")}, "NTP"
    sim.skew = 0


def a_clock_ten_minutes_off(
    _: Installation, sim: GraphSim, *__: object
) -> Iterator[tuple[Broken, str]]:
    sim.skew = -600
    yield {("red", "clock")}, "NTP"
    sim.skew = 0


def a_secret_that_was_replaced(
    here: Installation, sim: GraphSim, *_: object
) -> Iterator[tuple[Broken, str]]:
    kept = sim.directory.app.secrets[0].value
    sim.directory.app.secrets[0].value = "another-one-entirely"
    yield {("red", "account")}, "secret"
    here("account", "reconnect", "app", "--secret-stdin", typed="another-one-entirely")
    assert ill(here.doctor()).keys() == WITHOUT_DAEMON
    sim.directory.app.secrets[0].value = kept
    here("account", "reconnect", "app", "--secret-stdin", typed=kept)


def a_secret_that_has_ended(
    here: Installation, sim: GraphSim, *_: object
) -> Iterator[tuple[Broken, str]]:
    secret = sim.directory.app.secrets[0]
    secret.expires = 1.0
    yield {("red", "account")}, "Make a new one"
    secret.expires = None


def a_secret_that_ends_in_three_weeks(
    here: Installation, sim: GraphSim, *_: object
) -> Iterator[tuple[Broken, str]]:
    here.sql("UPDATE accounts SET expires_at = ?", int(sim.clock.now() * 1000) + 21 * _DAY_MS)
    yield {("yellow", "expiry")}, "account reconnect app"
    here("account", "reconnect", "app", *SECRET_UNTIL, typed=sim.endpoints.client_secret)


def a_secret_that_ends_in_two_days(
    here: Installation, sim: GraphSim, *_: object
) -> Iterator[tuple[Broken, str]]:
    here.sql("UPDATE accounts SET expires_at = ?", int(sim.clock.now() * 1000) + 2 * _DAY_MS)
    yield {("red", "expiry")}, "account reconnect app"
    here("account", "reconnect", "app", *SECRET_UNTIL, typed=sim.endpoints.client_secret)


def a_right_that_was_taken_away(
    _: Installation, sim: GraphSim, *__: object
) -> Iterator[tuple[Broken, str]]:
    sim.directory.app.roles.clear()
    yield {("red", "drive")}, "drivefeed probe"
    sim.directory.app.roles |= set(DEFAULT_ROLES)


def a_paused_connection(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here("pause", "Harbour")
    yield {("yellow", "connection")}, "drivefeed resume Harbour"
    here("resume", "Harbour")


def a_folder_that_is_gone(
    here: Installation, sim: GraphSim, *_: object
) -> Iterator[tuple[Broken, str]]:
    (root,) = here.rows("SELECT root_item_id FROM connections")
    sim.memory.delete(root["root_item_id"])
    yield {("red", "connection")}, "folder"
    sim.memory.restore(root["root_item_id"])


def a_drive_that_waits_for_a_person(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.sql("UPDATE drives SET attention = 'consent_missing'")
    yield {("red", "drive")}, "consent"
    here.sql("UPDATE drives SET attention = NULL")  # as the next round does that succeeds


def no_time_to_read(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    here.settings("[extraction]", "wall_seconds = 0.001")
    yield {("red", "backend")}, "extraction.memory_mb, .cpu_seconds and .wall_seconds"
    here.settings("[extraction]", "wall_seconds = 30")


def a_board_of_another_version(here: Installation, *_: object) -> Iterator[tuple[Broken, str]]:
    listed = here.home / "queues.json"
    listed.write_text('{"queues": []}')
    with patch.object(checkups_parts, "BOARD_QUEUES", listed):
        yield {("yellow", "board")}, "make format"


GRAPH: list[str] = []
ANOTHER_ACCOUNT: list[str] = []
SECRET_UNTIL = ("--secret-stdin", "--expires", "2099-01-31")
CASES: list[Callable[..., Iterator[tuple[Broken, str]]]] = [
    a_value_that_cannot_be,
    a_stage_that_is_none,
    values_that_contradict,
    secrets_for_everybody,
    an_open_data_folder,
    no_temporary_folder,
    a_file_that_is_no_catalog,
    a_damaged_catalog,
    a_catalog_of_an_older_version,
    a_catalog_of_a_newer_version,
    another_journal,
    a_lost_key,
    a_key_file_for_everybody,
    an_older_key,
    an_account_that_nobody_uses,
    settings_of_another_model,
    a_proxy_that_is_none,
    no_redis,
    a_redis_that_evicts,
    a_redis_that_forgets,
    a_redis_that_was_emptied,
    a_paused_queue,
    a_store_that_cannot_be_written,
    an_index_that_was_emptied,
    an_index_of_another_model,
    nobody_at_graph,
    a_wrong_authority,
    an_authority_that_is_not_there,
    a_proxy_that_is_down,
    no_mail_server,
    a_clock_three_minutes_off,
    a_clock_ten_minutes_off,
    a_secret_that_was_replaced,
    a_secret_that_has_ended,
    a_secret_that_ends_in_three_weeks,
    a_secret_that_ends_in_two_days,
    a_right_that_was_taken_away,
    a_paused_connection,
    a_folder_that_is_gone,
    a_drive_that_waits_for_a_person,
    no_time_to_read,
    a_board_of_another_version,
]


def test_what_is_well_is_green(here: Installation) -> None:
    found = here.doctor()
    assert ill(found).keys() == WITHOUT_DAEMON
    assert all(one["remedy"] for one in found if one["colour"] != "green")
    assert {one["part"] for one in found} >= {
        *("settings", "disk", "catalog", "secret key", "queue", "redis policy", "store", "index"),
        *("redis persistence", "redis sentinel", "backend", "deliveries", "network", "clock"),
        *("account", "drive", "connection"),
    }
    here("doctor", "--strict", ok=(1,))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_broken_check_is_the_only_one_and_its_remedy_cures_it(
    case: Callable[..., Iterator[tuple[Broken, str]]],
    here: Installation,
    sim: GraphSim,
    valkey_server: ValkeyServer,
) -> None:
    GRAPH[:] = [sim.endpoints.graph_url, sim.endpoints.ca_file]
    ends = sim.endpoints
    ANOTHER_ACCOUNT[:] = [
        *("account", "add", "idle", "--secret-stdin", "--tenant", ends.tenant_id),
        *("--client-id", ends.client_id, "--authority", ends.login_url),
        *("--graph-url", ends.graph_url, "--ca-file", ends.ca_file),
    ]
    story = case(here, sim, valkey_server)
    expected, remedy = next(story)
    answer = here("doctor", "--json", ok=(0, 1))
    found = ill(json.loads(answer.stdout))

    # Settings that cannot be read leave nothing else to look at, not even the daemon.
    assert found.keys() - WITHOUT_DAEMON == expected
    assert remedy in " ".join(found[one] for one in expected)
    assert answer.returncode == (1 if any(colour == "red" for colour, _ in expected) else 0)

    assert next(story, None) is None
    assert ill(here.doctor()).keys() == WITHOUT_DAEMON


def test_the_daemons_words_count(here: Installation) -> None:
    from drivefeed import __version__

    well = {"status": "ok", "version": __version__, "pid": 1, "down": {}, "longest_stall_ms": 3}
    with daemon_door(here.data) as answers:
        answers["/healthz"] = well
        assert not ill(here.doctor())
        answers["/healthz"] = well | {"version": "0.0.1"}
        assert ill(here.doctor()).keys() == {("yellow", "daemon")}
        answers["/healthz"] = well | {"down": {"store": "It does not answer."}}
        assert ill(here.doctor()).keys() == {("yellow", "daemon")}
        answers["/healthz"] = well
        here.sql("UPDATE reminders SET due_at = 1")
        assert ill(here.doctor()).keys() == {("red", "deliveries")}
        here.sql("UPDATE reminders SET due_at = NULL")
        here.sql("UPDATE drives SET last_round_at = 1")
        assert ill(here.doctor()).keys() == {("yellow", "drive")}


def test_a_status_page_that_does_not_answer(here: Installation) -> None:
    from drivefeed import __version__

    here.settings(f"web_port = {free_port()}")
    with daemon_door(here.data) as answers:
        answers["/healthz"] = {
            "status": "ok", "version": __version__, "pid": 1, "down": {}, "longest_stall_ms": 3,
        }  # fmt: skip
        found = ill(here.doctor())
        assert found.keys() == {("red", "web")}
        assert "choose another web_port" in found["red", "web"]
        with running_receiver() as receiver:
            here.settings(f"web_port = {receiver.port}")
            receiver.answers.append((503, {}, b""))
            assert "answers 503" in str(here.doctor())
            assert not ill(here.doctor())


def test_an_installation_that_nobody_made_yet(tmp_path: Path) -> None:
    nothing = Installation(tmp_path, "")
    found = nothing.doctor()
    assert ill(found).keys() == {("yellow", "catalog"), ("yellow", "daemon"), ("yellow", "queue")}
    assert "drivefeed init" in ill(found)["yellow", "catalog"]


def test_an_installation_without_an_account(tmp_path: Path) -> None:
    made = Installation(tmp_path, "")
    made("init")
    found = ill(made.doctor())
    assert found.keys() == {("yellow", "account"), ("yellow", "daemon"), ("yellow", "queue")}
    assert "drivefeed account add" in found["yellow", "account"]
    made.config.write_text("log_level = 'loud'\nnonsense = 1\n")
    told = made.doctor()
    assert [one["part"] for one in told] == ["settings", "settings"]
    assert {one["words"].partition(":")[0] for one in told} == {"log_level", "nonsense"}
    shown = made("doctor", ok=(1,)).stdout
    assert "2 findings: 2 red." in shown
    assert "\u240a" not in shown
