"""The example files fit the settings, and the containers fit each other."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from drivefeed.cli.health import ANSWER_SECONDS
from drivefeed.cli.serve import END_WITHIN_SECONDS
from drivefeed.setting_sections import S3Settings
from drivefeed.settings import CONFIG_VARIABLE, Settings, load_settings
from house.project import ROOT

if TYPE_CHECKING:
    from pathlib import Path

UNIT = ROOT / "config" / "drivefeed.service"
EXAMPLE = ROOT / "config" / "drivefeed.example.toml"


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REDIS_URL", "DATABASE_URL", "QDRANT_URL", "QDRANT_API_KEY", "S3_BUCKET"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    return found


def test_the_example_settings_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, str(EXAMPLE))
    settings = load_settings()
    assert settings.connections[0].account == settings.accounts[0].name
    assert settings.redis_url is None


def test_what_is_commented_out_in_the_example_is_accepted_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = re.sub(
        r"^# (?=\[{0,2}\w+\]{0,2}( = |$))", "", EXAMPLE.read_text("utf-8"), flags=re.MULTILINE
    )
    assert tomllib.loads(text)["s3"]["bucket"] == "documents"
    path = tmp_path / "all.toml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv(CONFIG_VARIABLE, str(path))
    settings = load_settings()
    assert settings.s3 is not None
    assert settings.redis_url is not None
    assert settings.notices[0].sender == "drivefeed@example.com"
    assert settings.outbound.no_proxy == ".internal"
    assert settings.connections[0].types == ["pdf", "docx"]


def test_the_containers_are_given_settings_that_exist(compose: dict[str, Any]) -> None:
    known = {f"DRIVEFEED_{name}".upper() for name in Settings.model_fields} | {CONFIG_VARIABLE}
    known |= {f"DRIVEFEED_S3__{name}".upper() for name in S3Settings.model_fields}
    assert set(compose["services"]["drivefeed"]["environment"]) <= known
    board = (ROOT / "bull-board" / "README.md").read_text("utf-8")
    assert all(f"`{n}`" in board for n in compose["services"]["bull-board"]["environment"])


def test_every_secret_comes_from_the_environment_file() -> None:
    text = (ROOT / "docker-compose.yml").read_text("utf-8")
    asked = set(re.findall(r"\$\{(\w+)", text))
    example = (ROOT / ".env.example").read_text("utf-8")
    offered = set(re.findall(r"^(\w+)=$", example, re.MULTILINE))
    assert asked == offered


def test_nothing_is_open_to_other_machines(compose: dict[str, Any]) -> None:
    published = [port for one in compose["services"].values() for port in one.get("ports", [])]
    assert published == ["127.0.0.1:8765:8765", "127.0.0.1:3999:3999"]


def test_services_and_volumes_that_are_named_exist(compose: dict[str, Any]) -> None:
    services = compose["services"]
    used = set()
    for one in services.values():
        assert set(one.get("depends_on", ())) <= set(services)
        assert ("image" in one) != ("build" in one)
        for mount in one.get("volumes", []):
            place = mount.split(":")[0]
            if place.startswith("."):
                assert (ROOT / place).exists()
            else:
                used.add(place)
    assert used == set(compose["volumes"])


def test_what_images_copy_is_there() -> None:
    for file in (ROOT / "Dockerfile", ROOT / "bull-board" / "Dockerfile"):
        for line in re.findall(r"^COPY (?!--from)(.+)$", file.read_text("utf-8"), re.MULTILINE):
            *sources, _ = line.split()
            assert all((file.parent / source).exists() for source in sources)


def test_every_server_says_whether_it_is_well(compose: dict[str, Any]) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    assert 'CMD ["drivefeed", "health"]' in dockerfile
    for name in ("redis", "s3", "qdrant", "bull-board"):
        check = compose["services"][name]["healthcheck"]
        assert check["test"][0] == "CMD"
        assert _seconds(check["timeout"]) <= _seconds(check["interval"])
    waited_for = compose["services"]["drivefeed"]["depends_on"]
    assert {name for name, how in waited_for.items() if how["condition"] == "service_healthy"} == {
        "redis",
        "qdrant",
    }
    allowed = float(re.findall(r"--timeout=(\d+)s", dockerfile)[0])
    assert allowed > ANSWER_SECONDS


def test_whoever_stops_it_waits_longer_than_it_takes(compose: dict[str, Any]) -> None:
    takes = Settings.model_fields["shutdown_seconds"].default + END_WITHIN_SECONDS
    assert takes < 30
    assert _seconds(compose["services"]["drivefeed"]["stop_grace_period"]) > takes
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT.read_text("utf-8"), re.MULTILINE)
    assert float(stop) > takes


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+)s", text)
    assert found, text
    return float(found[1])


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit of systemd, with a program that is there."""
    text = UNIT.read_text("utf-8").replace("/opt/drivefeed/bin/drivefeed", sys.executable)
    path = tmp_path / UNIT.name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="only systemd can read its units"
)
def test_systemd_understands_the_unit_and_finds_it_closed(unit: Path) -> None:
    verified = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert (verified.returncode, verified.stderr) == (0, "")
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    assert judged.returncode == 0, judged.stdout[-500:]


def test_the_unit_ends_the_main_process_first() -> None:
    text = UNIT.read_text("utf-8")
    for line in ("Type=notify", "KillMode=mixed", "OOMPolicy=continue", "SuccessExitStatus=130"):
        assert f"\n{line}\n" in text, line
    assert "/bin/drivefeed up" in text
