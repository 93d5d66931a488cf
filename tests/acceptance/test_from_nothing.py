"""From an empty folder to the first searchable document, by commands alone: each way to sign in."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from drivefeed.secrets.certificates import make_certificate
from graphsim.assertions import Issuer
from graphsim.clock import SystemClock
from support.commands import run_command
from support.daemon import COMMAND, Daemon
from support.processes import environment, until
from support.signing import sign_in
from support.sim import Sim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from acceptance.conftest import Figure

WORDS = "The ferry to the skerries leaves at a quarter past six."
SOAK = pytest.mark.soak


@dataclass
class Desk:
    """Somebody with a tenant, a folder in it, and an empty folder on this machine."""

    home: Path
    sim: Sim
    typed: list[str] = field(default_factory=list)

    @property
    def place(self) -> tuple[str, ...]:
        """The look-alike as options of ``account add``."""
        ends = self.sim.endpoints
        return (
            *("--tenant", ends["tenant_id"], "--client-id", ends["client_id"]),
            *("--authority", ends["login_url"], "--graph-url", ends["graph_url"]),
            *("--ca-file", str(self.home / ends["ca_file"])),
        )

    @property
    def data(self) -> tuple[str, str]:
        return "--data", str(self.home / "data")

    @property
    def browser(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.home / self.sim.endpoints["ca_file"])

    def __call__(self, *words: str) -> str:
        self.typed.append(" ".join(words))
        return run_command(*self.data, *words, cwd=self.home).stdout

    def register(self, words: dict[str, Any]) -> None:
        """Do the administrator's part at the app registration."""
        self.sim.change("PATCH", f"/apps/{self.sim.endpoints['client_id']}", words)


def by_secret(desk: Desk) -> None:
    (desk.home / "secret.txt").write_text(desk.sim.endpoints["client_secret"])
    desk("account", "add", "office", *desk.place, "--secret-file", "secret.txt")


def by_certificate_made_here(desk: Desk) -> None:
    desk("account", "add", "office", *desk.place, "--make-certificate")
    desk("account", "certificate", "office", "--out", "office.pem")
    desk.register({"certificates": [(desk.home / "office.pem").read_text()]})


def by_certificate_brought(desk: Desk) -> None:
    made = make_certificate("brought", now=int(time.time() * 1000), days=30)
    (desk.home / "brought.pem").write_text(made.pem)
    desk.register({"certificates": [made.public_pem]})
    desk("account", "add", "office", *desk.place, "--certificate", "brought.pem")


def by_workload(desk: Desk) -> None:
    issuer = Issuer("https://platform.invalid", SystemClock())
    key = {"url": issuer.url, "public_key": issuer.public_pem.decode()}
    desk.sim.change("POST", "/issuers", key)
    desk.register({"federations": [{"issuer": issuer.url, "subject": "drivefeed"}]})
    (desk.home / "token").write_text(issuer.token("drivefeed"))
    file = str(desk.home / "token")
    desk("account", "add", "office", *desk.place, "--workload-token-file", file)


def by_device_code(desk: Desk) -> None:
    words = ("account", "add", "mine", *desk.place)
    desk.typed.append(" ".join([*words, "--device"]))
    ca_file = str(desk.home / desk.sim.endpoints["ca_file"])
    sign_in(*desk.data, *words, cwd=desk.home, ca_file=ca_file)


def by_browser(desk: Desk) -> None:
    words = ("account", "add", "mine", *desk.place, "--browser")
    desk.typed.append(" ".join(words))
    process = subprocess.Popen(
        [*COMMAND, *desk.data, *words],
        cwd=desk.home,
        env=environment(BROWSER="true", PYTHONUNBUFFERED="1"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        shown = ""
        while not (found := re.search(r"https://127\S+authorize\S+", shown)):
            line = process.stdout.readline()
            assert line, shown
            shown += line
        answer = httpx.get(found[0], verify=desk.browser)
        httpx.get(answer.headers["location"].replace("//localhost:", "//127.0.0.1:"))
        assert process.wait(60) == 0, process.stdout.read()
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    folder = tmp_path / "OneDrive" / "Harbour"
    folder.mkdir(parents=True)
    (folder / "Ferries.txt").write_text(f"{WORDS}\n")
    sim = Sim(folder.parent, tmp_path / "graphsim")
    sim.start()
    yield Desk(tmp_path, sim)
    sim.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "signs_in",
    [
        pytest.param(by_secret, marks=SOAK),
        by_certificate_made_here,
        pytest.param(by_certificate_brought, marks=SOAK),
        pytest.param(by_workload, marks=SOAK),
        by_device_code,
        pytest.param(by_browser, marks=SOAK),
    ],
)
def test_to_the_first_searchable_document(desk: Desk, signs_in: Any, figure: Figure) -> None:
    (drive,) = desk.sim.endpoints["drives"]
    address = f"{drive['web_url']}/Harbour"
    began = time.monotonic()
    desk("init")
    signs_in(desk)
    name = "mine" if "mine" in desk.typed[-1] else "office"
    assert "✓" in desk("probe", name, "--drive", address)
    plan = desk("connect", address)
    assert "1 file of 1 found would be imported" in plan
    desk("connect", address, "--apply")
    # A simulator that tells nothing of itself: nothing is written into settings.
    silent = Sim(desk.sim.folder, desk.sim.state)
    silent.process = desk.sim.process
    daemon = Daemon(desk.home, silent)
    try:
        desk.typed.append("up")
        daemon.start()
        until(daemon.ledger, seconds=60, what=daemon.last_words)
        until(lambda: "100 %" in desk("status"), seconds=30, what=daemon.last_words, pause=0.3)
        (found, *_) = json.loads(desk("search", "ferry to the skerries", "--json"))
        assert found["path"] == "Ferries.txt"
        took = time.monotonic() - began
        daemon.stop()
    finally:
        daemon.end()
    commands = list(dict.fromkeys(desk.typed))
    figure(f"from nothing, {signs_in.__name__}", f"{len(commands)} commands, {took:.0f} s")
