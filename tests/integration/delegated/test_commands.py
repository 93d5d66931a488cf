"""Accounts at the command line, from an empty folder, against the look-alike of Entra."""

from __future__ import annotations

import json
import re
import sqlite3
import ssl
import subprocess
import threading
import webbrowser
from contextlib import closing
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from drivefeed.secrets.certificates import make_certificate
from graphsim.tenancy import KeyCredential
from integration.cli.terminal import Terminal
from integration.delegated.desk import Desk, serving
from integration.delegated.kit import other_person_at
from support import forks
from support.commands import said_in_frame
from support.daemon import COMMAND
from support.processes import environment
from support.signing import sign_in
from support.valkey import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from graphsim.serving import GraphSim


@pytest.fixture(scope="module")
def sim() -> Iterator[GraphSim]:
    with serving() as running:
        yield running


@pytest.fixture
def desk(tmp_path: Path, sim: GraphSim) -> Desk:
    made = Desk(tmp_path, sim)
    made("init")
    return made


def test_init_is_safe_to_repeat(tmp_path: Path, sim: GraphSim) -> None:
    desk = Desk(tmp_path, sim)
    first = desk.json("init", "--org", "Harbour Office")
    again = desk.json("init", "--org", "Harbour Office")
    assert (first["key_made"], first["org_made"]) == (True, True)
    assert (again["key_made"], again["org_made"]) == (False, False)
    assert again["key_id"] == first["key_id"]
    assert again["org_id"] == first["org_id"]
    assert (tmp_path / "data" / "secret.key").stat().st_mode & 0o777 == 0o600
    words = desk("init", "--org", "Harbour Office").stdout
    assert "drivefeed account add" in words
    assert (tmp_path / "data" / "secret.key").read_text().strip() not in words


def test_several_that_initialise_at_once_make_one_installation(tmp_path: Path) -> None:
    at_once = [
        subprocess.Popen(
            [*COMMAND, "--data", str(tmp_path / "data"), "init", "--json"],
            cwd=tmp_path,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    ends = [(*one.communicate(timeout=100), one.returncode) for one in at_once]
    assert [code for _, _, code in ends] == [0, 0, 0], ends
    made = [json.loads(printed) for printed, _, _ in ends]
    assert len({(one["org_id"], one["key_id"]) for one in made}) == 1
    assert sum(one["org_made"] for one in made) == 1
    assert sum(one["key_made"] for one in made) == 1
    assert sum(one["api_key"] is not None for one in made) == 1


def test_a_lost_key_is_not_replaced_in_silence(desk: Desk) -> None:
    secret = desk.sim.endpoints.client_secret
    desk("account", "add", "app", *desk.place, "--secret-stdin", typed=secret)
    (desk.home / "data" / "secret.key").unlink()
    assert "Bring it back" in desk("init", ok=[3]).stderr
    assert not (desk.home / "data" / "secret.key").exists()


def test_a_client_secret_from_standard_input(desk: Desk) -> None:
    secret = desk.sim.endpoints.client_secret
    added = desk(
        *("account", "add", "app", *desk.place, "--secret-stdin", "--expires", "2099-01-31"),
        typed=f"{secret}\n",
    )
    assert "Account 'app' was added." in added.stdout
    assert "signs in" in added.stdout
    tried = desk.json("account", "test", "app")
    assert "clock" not in tried["words"]
    desk.sim.skew = 600.0
    try:
        off = desk.json("account", "test", "app")
    finally:
        desk.sim.skew = 0.0
    assert re.search("clock of this machine is (59|60).* behind", off["words"])
    assert "NTP" in off["words"]
    assert tried["can_sign_in"]
    (listed,) = desk.json("account", "list")
    assert (listed["sign_in"], listed["state"], listed["declared"]) == ("secret", "ok", False)
    assert desk("account", "show", "app").stdout.count("2099-01-3") == 1
    assert desk.anywhere(secret) == []
    for words in (("account", "list"), ("account", "show", "app"), ("secrets", "status")):
        assert secret not in desk(*words, "--json").stdout


def test_a_wrong_secret_is_told_and_can_be_replaced(desk: Desk) -> None:
    file = desk.home / "secret.txt"
    file.write_text("wrong\n")
    added = desk("account", "add", "app", *desk.place, "--secret-file", str(file), ok=[1])
    assert "AADSTS7000215" in added.stdout
    (listed,) = desk.json("account", "list")
    assert (listed["state"], listed["reason"]) == ("misconfigured", "secret_wrong")
    assert "AADSTS7000215" in listed["detail"]
    file.write_text(desk.sim.endpoints.client_secret)
    desk("account", "reconnect", "app", "--secret-file", str(file))
    (listed,) = desk.json("account", "list")
    assert (listed["state"], listed["detail"], listed["revision"]) == ("ok", None, 2)


def test_a_certificate_made_here(desk: Desk) -> None:
    made = desk.json("account", "add", "app", *desk.place, "--make-certificate")
    assert made["can_sign_in"] is None
    shown = desk.json("account", "certificate", "app")
    assert made["certificate"] == shown["public_pem"]
    assert "PRIVATE" not in json.dumps(shown)
    file = desk.home / "public.pem"
    words = desk("account", "certificate", "app", "--out", str(file)).stdout
    assert file.read_text() == shown["public_pem"]
    assert shown["sha1"] in words
    assert desk.anywhere("PRIVATE KEY") == []
    (listed,) = desk.json("account", "list")
    assert listed["expires_at"] == shown["expires_at"]
    early = desk.json("account", "test", "app", ok=[1])
    assert (early["state"], early["reason"]) == ("misconfigured", "certificate_unknown")
    # An administrator uploads the public part.
    app = desk.sim.app.entra.directory.app
    app.certificates.append(KeyCredential(file.read_bytes()))
    tried = desk.json("account", "test", "app")
    assert tried["state"] == "ok"
    assert tried["permissions"] == ["Files.Read.All", "Sites.Read.All"]
    app.certificates.clear()


def test_a_certificate_that_was_brought(desk: Desk) -> None:
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption
    from cryptography.hazmat.primitives.serialization import load_pem_private_key as load_key
    from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
    from cryptography.x509 import load_pem_x509_certificate

    made = make_certificate("brought", now=1_800_000_000_000)
    key, public = load_key(made.pem.encode(), None), load_pem_x509_certificate(made.pem.encode())
    file = desk.home / "brought.pfx"
    file.write_bytes(
        serialize_key_and_certificates(
            b"x",
            key,  # type: ignore[arg-type]  # it is RSA
            public,
            None,
            BestAvailableEncryption(b"open sesame"),
        )
    )
    add = ("account", "add", "app", *desk.place, "--no-test", "--certificate", str(file))
    assert "--password-stdin" in desk(*add, ok=[3]).stderr
    assert "with this password" in desk(*add, "--password-stdin", typed="no\n", ok=[3]).stderr
    added = desk.json(*add, "--password-stdin", typed="open sesame\n")
    assert added["thumbprint"] == made.sha1
    file.write_text(made.public_pem)
    again = desk("account", "reconnect", "app", "--certificate", str(file), ok=[3])
    assert "no private key" in again.stderr


def test_workload_identity_keeps_the_file_alone(desk: Desk) -> None:
    file = desk.home / "token"
    file.write_text("the platform's token")
    add = ("account", "add", "app", *desk.place, "--no-test", "--workload-token-file", str(file))
    desk(*add)
    (listed,) = desk.json("account", "list")
    assert (listed["sign_in"], listed["token_file"]) == ("workload", str(file))
    assert desk.rows("SELECT count(*) AS n FROM credentials") == [{"n": 0}]
    file.unlink()
    assert "cannot be read" in desk("account", "reconnect", "app", *add[-2:], ok=[3]).stderr


class Visitor(webbrowser.BaseBrowser):
    """A browser in which somebody signs in at once."""

    def __init__(self, sim: GraphSim) -> None:
        super().__init__("visitor")
        self._context = ssl.create_default_context(cafile=sim.endpoints.ca_file)
        self.pages: list[int] = []

    def open(self, url: str, *_: object, **__: object) -> bool:
        threading.Thread(target=self._visit, args=(url,)).start()
        return True

    def _visit(self, url: str) -> None:
        target = httpx.get(url, verify=self._context).headers["location"]
        page = httpx.get(target.replace("//localhost:", "//127.0.0.1:"))
        self.pages.append(page.status_code)


@pytest.fixture
def visitor(sim: GraphSim, monkeypatch: pytest.MonkeyPatch) -> Visitor:
    made = Visitor(sim)
    monkeypatch.setattr("support.commands.environment", lambda: environment(BROWSER="visitor"))
    monkeypatch.setattr(webbrowser, "_tryorder", [])
    monkeypatch.setattr(webbrowser, "_browsers", {})
    webbrowser.register("visitor", None, made, preferred=True)
    return made


def test_a_person_signs_in_with_a_browser(desk: Desk, visitor: Visitor) -> None:
    added = desk.json("account", "add", "mine", *desk.place, "--browser")
    assert visitor.pages == [200]
    assert added["user_name"] == desk.sim.endpoints.user_name
    assert added["can_sign_in"]
    kept = desk.rows("SELECT kind, revision FROM credentials")
    assert kept == [{"kind": "tokens", "revision": 1}]
    desk.sim.app.entra.grants.revoke_refresh_tokens()
    desk.sim.app.entra.grants.revoke_access_tokens()
    desk("account", "reconnect", "mine", "--browser")
    assert desk.rows("SELECT kind, revision FROM credentials") == [
        {"kind": "tokens", "revision": 2}
    ]


def test_somebody_else_cannot_take_an_account_over(desk: Desk, visitor: Visitor) -> None:
    desk("account", "add", "mine", *desk.place, "--browser")
    with other_person_at(desk.sim) as other:
        refused = desk("account", "reconnect", "mine", "--browser", ok=[3])
    assert visitor.pages == [200, 200]
    assert f"{other.name} signed in, and account 'mine' belongs to" in refused.stderr
    (listed,) = desk.json("account", "list")
    assert (listed["revision"], listed["user_name"]) == (1, desk.sim.endpoints.user_name)


def test_a_person_signs_in_by_a_code(desk: Desk) -> None:
    words = ("--data", str(desk.home / "data"), "account", "add", "mine", *desk.place)
    rest = sign_in(*words, cwd=desk.home, ca_file=desk.sim.endpoints.ca_file)
    assert "Account 'mine' was added." in rest
    assert desk.sim.endpoints.user_name in rest


def test_accounts_go_when_nothing_needs_them(desk: Desk) -> None:
    secret = desk.sim.endpoints.client_secret
    desk("account", "add", "app", *desk.place, "--secret-stdin", "--no-test", typed=secret)
    taken = desk("account", "add", "app", *desk.place, "--secret-stdin", typed=secret, ok=[3])
    assert "There is an account 'app' already" in taken.stderr
    desk("connect", desk.sim.endpoints.drives[0].web_url)
    assert desk.rows("SELECT count(*) AS n FROM drives") == [{"n": 1}]
    desk("account", "remove", "app")
    assert desk.rows("SELECT count(*) AS n FROM drives") == [{"n": 0}]
    told = desk.rows("SELECT action, before, after FROM audit_log WHERE action LIKE 'account.%'")
    assert [one["action"] for one in told] == ["account.added", "account.removed"]
    assert secret not in json.dumps(told)
    assert desk.json("account", "list") == []
    assert desk.rows("SELECT count(*) AS n FROM credentials") == [{"n": 0}]
    assert "There is no account 'app'" in desk("account", "test", "app", ok=[3]).stderr


def test_options_are_checked_before_anything_happens(desk: Desk) -> None:
    for words, sentence in (
        (("--secret-stdin", "--device"), "only one of"),
        ((), "Say how it signs in"),
        (("--password-stdin", "--device"), "goes with --certificate"),
        (("--device", "--expires", "2099-01-01"), "goes with a client secret"),
        (("--device", "--cloud", "moon"), "There is no cloud"),
    ):
        refused = desk("account", "add", "x", *desk.place, *words, ok=[2])
        assert sentence in said_in_frame(refused.stderr)
    assert desk.json("account", "list") == []


def test_organizations(desk: Desk) -> None:
    desk("org", "add", "Harbour Office")
    assert "already" in desk("org", "add", "Harbour Office", ok=[3]).stderr
    desk("org", "rename", "Harbour Office", "Port")
    assert "There is no organization" in desk("org", "rename", "Harbour Office", "x", ok=[3]).stderr
    assert [one["name"] for one in desk.json("org", "list")] == ["Port", "default"]
    add = ("account", "add", "x", *desk.place, "--no-test", "--secret-stdin")
    whose = desk(*add, typed="s", ok=[2])
    assert "--org" in whose.stderr
    desk(*add, "--org", "Port", typed="s")
    desk(*add, "--org", "default", typed="s")
    assert "Several organizations" in desk("account", "show", "x", ok=[3]).stderr
    assert desk.json("account", "show", "x", "--org", "Port")["org"] == "Port"


def test_keys_are_rotated(desk: Desk) -> None:
    add = ("account", "add", "app", *desk.place, "--secret-stdin")
    desk(*add, typed=desk.sim.endpoints.client_secret)
    before = desk.json("secrets", "status")["keys"]
    assert [(one["newest"], one["sealed"]) for one in before] == [(True, 1)]
    rotated = desk.json("secrets", "rotate", "--new-key")
    assert (rotated["resealed"], rotated["dropped"]) == (1, [])
    told = desk.rows("SELECT after FROM audit_log WHERE action = 'secrets.rotated'")
    assert told == [{"after": json.dumps({"key_id": rotated["key_id"]})}]
    now = desk.json("secrets", "status")["keys"]
    assert [(one["newest"], one["sealed"]) for one in now] == [(True, 1), (False, 0)]
    dropped = desk.json("secrets", "rotate", "--drop-old")
    assert (dropped["resealed"], dropped["dropped"]) == (0, [before[0]["key_id"]])
    assert desk.json("account", "test", "app")["can_sign_in"]


def test_a_missing_key_is_red(desk: Desk) -> None:
    add = ("account", "add", "app", *desk.place, "--secret-stdin", "--no-test")
    desk(*add, typed="secret")
    key = desk.home / "data" / "secret.key"
    old = key.read_text()
    key.write_text("A" * 43 + "=\n")
    (here, missing) = desk.json("secrets", "status", ok=[1])["keys"]
    assert (here["here"], missing["here"], missing["sealed"]) == (True, False, 1)
    refused = desk.json("secrets", "rotate", ok=[1])["refused"]
    assert [one["account"] for one in refused] == ["app"]
    (listed,) = desk.json("account", "list")
    tried = desk.json("account", "test", "app", ok=[1])
    assert "Bring that key back" in tried["words"]
    assert listed["name"] == "app"
    # What is said is what is wrong now, not what was wrong when it was first looked at.
    for content, mode, words in (
        ("", 0o600, "holds none"),
        ("A" * 43 + "=\n", 0o600, "Bring that key back"),
        ("garbage", 0o600, "is not 32 bytes in base64"),
        (old, 0o644, "can be read by others than its owner. Run 'chmod 600"),
    ):
        key.write_text(content)
        key.chmod(mode)
        said = desk("account", "test", "app", ok=[1]).stdout
        assert words in said
        assert "Check tenant" not in said
        told = desk.json("account", "show", "app")
        assert (told["state"], told["reason"]) == ("misconfigured", "secrets_locked")
        assert words in told["detail"]
        assert words in desk("account", "list").stdout
    key.chmod(0o600)
    assert desk.json("secrets", "rotate")["resealed"] == 0


def test_an_address_from_another_machine_is_pasted(desk: Desk) -> None:
    """A terminal without a browser: the address is shown, and what it ends at is typed."""

    def start(*words: str, **options: Any) -> forks.Fork:
        return forks.Fork(
            forks.DRIVEFEED,
            ("--data", str(desk.home / "data"), *words),
            cwd=desk.home,
            env=environment(),
            start_new_session=True,
            **options,
        )

    terminal = Terminal(start, "account", "add", "mine", *desk.place, "--browser")
    try:
        terminal.wait_for("paste that page's address here")
        shown = "".join(terminal.seen.split())
        found = re.search(r"https://127[^ ]*?(?=Isthebrowser)", shown)
        assert found, terminal.seen
        context = ssl.create_default_context(cafile=desk.sim.endpoints.ca_file)
        url = httpx.get(found[0], verify=context).headers["location"]
        terminal.press("http://localhost/?code=other&state=other\n")
        terminal.wait_for("belongs to another sign-in")
        terminal.press(f"{url}\n")
        terminal.wait_for(r"Account 'mine' was added\.")
        assert terminal.wait_until_ended() == 0
    finally:
        terminal.process.kill()
        terminal.process.wait()
        terminal.close()


def test_an_account_that_nobody_answered_is_not_called_ok(desk: Desk) -> None:
    place = [*desk.place]
    place[place.index("--authority") + 1] = f"https://127.0.0.1:{free_port()}"
    secret = desk.sim.endpoints.client_secret
    tried = desk("account", "add", "app", *place, "--secret-stdin", typed=secret, ok=[1])
    assert "could not be reached: 127.0.0.1:" in tried.stdout
    assert "'drivefeed doctor' looks at each of them." in tried.stdout
    (listed,) = desk.json("account", "list")
    assert (listed["state"], listed["reason"]) == ("unreached", None)
    assert "could not be reached" in desk("account", "show", "app").stdout
    with closing(sqlite3.connect(desk.home / "data" / "catalog.sqlite")) as catalog, catalog:
        catalog.execute("UPDATE accounts SET authority = ?", (desk.sim.endpoints.login_url,))
    assert desk.json("account", "test", "app")["state"] == "ok"
