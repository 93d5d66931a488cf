"""The script and the page for an administrator: what they hold, and that they are well formed."""

from __future__ import annotations

import os
import re
import subprocess
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain.errors import NeedsAttention
from drivefeed.services.registration import (
    Registration,
    Rights,
    Shell,
    page,
    public_part,
    script,
    site_of,
)
from integration.graph_source.certificates import certificate

if TYPE_CHECKING:
    from pathlib import Path

SITE = "https://example.sharepoint.com/sites/R&D%20Lab/Shared%20Documents/Forms/AllItems.aspx?id=1"
HOSTILE = """O'Brien "$(touch pwned)" `id` \u2019; rm -rf ~ $env:PATH <script>"""


def wanted(**changes: Any) -> Registration:
    facts: dict[str, Any] = {
        "app_name": "drivefeed",
        "tenant": "example.onmicrosoft.com",
        "rights": Rights.SELECTED,
        "site_url": SITE,
        "certificate": certificate()[1].decode(),
    }
    return Registration(**(facts | changes))


VARIANTS = [
    wanted(),
    wanted(rights=Rights.READ_ALL, site_url=None, browse=True),
    wanted(client_id="11111111-2222-3333-4444-555555555555", certificate=None, cloud="us_l5"),
    wanted(app_name=HOSTILE, cloud="china"),
]


@pytest.mark.parametrize("one", VARIANTS)
def test_bash_understands_the_script(one: Registration) -> None:
    text = script(one, Shell.AZURE_CLI)
    checked = subprocess.run(
        ["bash", "-n"], input=text, text=True, capture_output=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert "It was not run on a live tenant" in text


_AZ = """#!/usr/bin/env bash
printf '%s\\x1f' "$@" >>"$AZ_LOG"; printf '\\n' >>"$AZ_LOG"
case "$*" in
  *"credential reset"*) for one in "$@"; do
    case "$one" in @*) cat "${one#@}" >"$AZ_LOG.pem";; esac; done;;
  *"app create"*) echo 99999999-0000-0000-0000-000000000000;;
  *tenantId*) echo the-tenant;;
  *"sp show"*) exit 3;;
esac
"""


@pytest.mark.parametrize("name", ["drivefeed", HOSTILE])
def test_the_script_asks_the_azure_cli_for_each_step(name: str, tmp_path: Path) -> None:
    az, log = tmp_path / "az", tmp_path / "log"
    az.write_text(_AZ)
    az.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "AZ_LOG": str(log)}
    done = subprocess.run(
        ["bash"], input=script(wanted(app_name=name), Shell.AZURE_CLI), text=True,
        capture_output=True, check=False, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    asked = [line.split("\x1f")[:-1] for line in log.read_text().splitlines()]
    assert ["cloud", "set", "--name", "AzureCloud"] in asked
    listed = next(one for one in asked if one[:3] == ["ad", "app", "list"])
    escaped = name.replace("'", "''")
    assert listed[listed.index("--filter") + 1] == f"displayName eq '{escaped}'"
    created = next(one for one in asked if one[:3] == ["ad", "app", "create"])
    assert created[created.index("--display-name") + 1] == name
    permission = next(one for one in asked if one[:4] == ["ad", "app", "permission", "add"])
    assert "00000003-0000-0000-c000-000000000000" in permission
    assert "883ea226-0bf2-4a8f-9f9d-92c9162a727d=Role" in permission
    assert any(one[:4] == ["ad", "app", "permission", "admin-consent"] for one in asked)
    assert any(one[:3] == ["ad", "sp", "create"] for one in asked)
    assert (tmp_path / "log.pem").read_text().strip() == certificate()[1].decode().strip()
    assert '"application": {"id": "99999999-0000-0000-0000-000000000000"' in done.stdout
    assert "example.sharepoint.com:/sites/R%26D%20Lab?$select=id" in done.stdout
    assert "client id: 99999999-0000-0000-0000-000000000000" in done.stdout
    assert not (tmp_path / "pwned").exists()


def _powershell_tokens(text: str) -> list[str]:
    """Split a script into its strings, comments, brackets and the rest, or fail."""
    single = r"'(?:[^'\u2018-\u201b]|['\u2018-\u201b]{2})*'"
    double = r'"(?:[^"`$]|`.|\$(?!\()|\$\((?:[^()"\']|\([^()]*\)|"[^"]*"|\'[^\']*\')*\))*"'
    pattern = re.compile(
        rf"{single}|{double}|\#[^\n]*|[\[\](){{}}]|[^'\"\#\[\](){{}}\u2018-\u201b]+"
    )
    found, at = [], 0
    while at < len(text):
        match = pattern.match(text, at)
        assert match, text[at : at + 80]
        found.append(match[0])
        at = match.end()
    return found


@pytest.mark.parametrize("one", VARIANTS)
def test_the_powershell_script_is_well_formed_and_holds_each_step(one: Registration) -> None:
    text = script(one, Shell.POWERSHELL)
    pairs, open_ = {")": "(", "]": "[", "}": "{"}, []
    for token in _powershell_tokens(text):
        if token in "([{":
            open_.append(token)
        elif token in pairs:
            assert open_.pop() == pairs[token]
    assert not open_
    assert "It was not run on a live tenant" in text
    assert "/appRoleAssignments" in text
    for identifier in one.permissions.values():
        assert identifier in text
    assert ("/permissions" in text) is (one.rights is Rights.SELECTED)
    assert ("keyCredentials" in text) is (one.certificate is not None)
    assert "PRIVATE" not in text


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href"}]


@pytest.mark.parametrize("one", VARIANTS)
def test_the_page_holds_everything_and_loads_nothing(one: Registration) -> None:
    text = page(one)
    parsed = _Page()
    parsed.feed(text)
    assert not {"script", "link", "img", "iframe"} & set(parsed.tags)
    assert parsed.links == ([one.site_url] if one.rights is Rights.SELECTED else [])
    for name, identifier in one.permissions.items():
        assert name in text
        assert identifier in text
    assert parsed.tags.count("details") == len(Shell)
    assert "PRIVATE" not in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"site_url": None}, "need the address of a site"),
        ({"site_url": "https://example.sharepoint.com/sites/"}, "not the address of a SharePoint"),
        ({"site_url": "ftp://example.sharepoint.com/sites/a"}, "not the address of a SharePoint"),
        ({"tenant": "a b"}, "neither a tenant's id nor its domain"),
        ({"client_id": "x"}, "not a client id"),
        ({"cloud": "moon"}, "no cloud 'moon'"),
        ({"certificate": "-----BEGIN PUBLIC KEY-----"}, "not PEM"),
        ({"app_name": "a\nb"}, "control characters"),
    ],
)
def test_what_no_script_can_be_made_of_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(NeedsAttention, match=words):
        wanted(**changes)


def test_all_problems_come_at_once() -> None:
    with pytest.raises(NeedsAttention) as caught:
        wanted(tenant="", cloud="moon", site_url=None)
    assert str(caught.value).count(".") >= 3


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (SITE, ("example.sharepoint.com", "/sites/R%26D%20Lab")),
        ("https://h.sharepoint.com/teams/T/x", ("h.sharepoint.com", "/teams/T")),
        ("https://h-my.sharepoint.com/personal/a_b/Documents", ("h-my.sharepoint.com",
                                                                "/personal/a_b")),
        ("https://h.sharepoint.com/Shared%20Documents", ("h.sharepoint.com", "")),
        ("https://h.sharepoint.com/sites/a%0Ab", None),
        ("nonsense", None),
    ],
)  # fmt: skip
def test_the_site_of_an_address(url: str, expected: tuple[str, str] | None) -> None:
    assert site_of(url) == expected


def test_the_key_never_gets_into_a_script() -> None:
    both, public = certificate()
    found = public_part(both)
    assert found is not None
    assert found.strip() == public.decode().strip()
    assert public_part("nothing") is None
