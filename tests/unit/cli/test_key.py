"""``key`` and ``web`` as they are typed, in this process."""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.engine import open_catalog
from drivefeed.cli.app import app
from drivefeed.cli.context import os_user
from drivefeed.domain.errors import NeedsAttention, NotFound
from drivefeed.settings import load_settings
from drivefeed.web.door import leaving_word
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    async def make() -> None:
        catalog = await open_catalog(
            new_catalog(tmp_path / "catalog.sqlite"),
            clock=ManualClock(),
            ids=CountedIds(),
            checkpoint=no_checkpoint,
        )
        await ensure_org(catalog, "acme")
        await catalog.aclose()

    asyncio.run(make())
    monkeypatch.delenv("DRIVEFEED_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(installation: Path, *words: str, code: int = 0) -> Result:
    found = CliRunner().invoke(app, ["--data", str(installation), *words])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == code, found.output
    return found


def answered(installation: Path, *words: str) -> Any:
    return json.loads(typed(installation, *words, "--json").stdout)


def test_a_key_is_shown_once_listed_and_revoked(installation: Path) -> None:
    key, note = typed(installation, "key", "create", "reports").stdout.splitlines()
    assert key.startswith("df_")
    assert "not shown again" in note

    (one,) = answered(installation, "key", "list")
    assert (one["name"], one["org_name"], one["scopes"]) == ("reports", "acme", ["read"])
    assert one["expires_at"] - one["created_at"] == 90 * 24 * 3600 * 1000
    listed = typed(installation, "key", "list").stdout
    assert one["prefix"] in listed
    assert key not in listed
    assert key not in json.dumps(one)

    assert "Revoked: reports" in typed(installation, "key", "revoke", f"{one['prefix']}_…").stdout
    assert "before" in typed(installation, "key", "revoke", "reports").stdout
    assert "revoked" in typed(installation, "key", "list").stdout
    with pytest.raises(NotFound):
        typed(installation, "key", "revoke", "nobody")


def test_scopes_and_spans_of_time_are_read(installation: Path) -> None:
    made = answered(
        installation, "key", "create", "w", "--scopes", "read, write", "--expires", "never"
    )
    assert (made["scopes"], made["expires_at"]) == (["read", "write"], None)
    made = answered(installation, "key", "create", "m", "--expires", "30m")
    assert made["expires_at"] - made["created_at"] == 30 * 60 * 1000
    for wrong in (
        ["--expires", "soon"],
        ["--expires", "0d"],
        ["--scopes", "all"],
        ["--scopes", ""],
    ):
        typed(installation, "key", "create", "x", *wrong, code=2)
    with pytest.raises(NotFound, match="nobody"):
        typed(installation, "key", "create", "x", "--org", "nobody")


def test_a_link_leads_to_where_the_page_is(
    installation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = typed(installation, "key", "link").stdout
    assert link.startswith("http://127.0.0.1:8765/sign-in/once?link=dl_")
    monkeypatch.setenv("DRIVEFEED_WEB_PORT", "9000")
    assert ":9000/" in typed(installation, "key", "link").stdout
    monkeypatch.setenv("DRIVEFEED_WEB_URL", "https://feed.example/")
    assert answered(installation, "key", "link")["link"].startswith(
        "https://feed.example/sign-in/once?link=dl_"
    )


def test_a_port_that_is_taken_is_told_in_a_sentence(installation: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(NeedsAttention, match=f"port {port}.*--port"):
            typed(installation, "web", "--port", port)


def test_who_made_and_who_ended_a_key_is_written_down(installation: Path) -> None:
    key = typed(installation, "key", "create", "reports").stdout.splitlines()[0]
    typed(installation, "key", "revoke", "reports")

    with sqlite3.connect(installation / "catalog.sqlite") as catalog:
        found = list(catalog.execute("SELECT actor, action, after FROM audit_log ORDER BY id"))
    assert [(actor, action) for actor, action, _ in found] == [
        (os_user(), "key.created"),
        (os_user(), "key.revoked"),
    ]
    assert key not in str(found)


def test_a_link_leads_to_the_page_that_runs(installation: Path) -> None:
    word = installation / "web.json"
    with socket.create_server(("127.0.0.1", 0)) as running:
        url = f"http://127.0.0.1:{running.getsockname()[1]}"
        with leaving_word(installation, url):
            assert typed(installation, "key", "link").stdout.startswith(f"{url}/sign-in/once")
        assert not word.exists()
        word.write_text(json.dumps({"url": url}))
    # It was killed, and nobody is there any more.
    assert ":8765/" in typed(installation, "key", "link").stdout
    word.write_text("[]")
    assert ":8765/" in typed(installation, "key", "link").stdout


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "https://x/x?y", "https://x?y", "x.example", "https://a@b", ""]
)
def test_a_link_leads_to_web_addresses_alone(installation: Path, url: str) -> None:
    typed(installation, "key", "link", "--url", url, code=2)
    with pytest.raises(NeedsAttention, match="web_url"):
        load_settings(web_url=url or "x")
    good = typed(installation, "key", "link", "--url", "https://feed.example:8443/").stdout
    assert good.startswith("https://feed.example:8443/sign-in/once?link=")
