"""The example files fit the settings, and the containers fit each other."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from drivefeed.setting_sections import S3Settings
from drivefeed.settings import CONFIG_VARIABLE, Settings, load_settings
from house.project import ROOT

if TYPE_CHECKING:
    from pathlib import Path

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
