"""``drivefeed registration`` as it is typed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from drivefeed.cli.app import app
from drivefeed.domain.errors import NeedsAttention
from integration.graph_source.certificates import certificate

if TYPE_CHECKING:
    from pathlib import Path

SITE = ("--tenant", "example.com", "--site", "https://example.sharepoint.com/sites/Lab")


def run(*words: str) -> str:
    done = CliRunner().invoke(app, ["registration", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_each_shell_and_the_page() -> None:
    assert run(*SITE).startswith("#!/usr/bin/env bash")
    assert run(*SITE, "--shell", "powershell").startswith("#Requires -Version 7.0")
    assert run(*SITE, "--page").startswith("<!doctype html>")
    answer = json.loads(run(*SITE, "--rights", "read-all", "--browse", "--json"))
    assert answer["permissions"] == ["Files.Read.All", "Sites.Read.All"]
    assert "az ad app create" in answer["text"]


def test_of_a_certificate_only_the_public_part_is_taken(tmp_path: Path) -> None:
    pem = tmp_path / "both.pem"
    pem.write_text(certificate()[0])
    text = run(*SITE, "--certificate", str(pem))
    assert certificate()[1].decode().strip() in text
    assert "PRIVATE" not in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--site", SITE[3]), "Say --account or --tenant"),
        ((*SITE, "--shell", "fish"), "--shell is one of azure-cli, powershell"),
        ((*SITE, "--rights", "all"), "--rights is one of selected, read-all"),
    ],
)
def test_options_that_make_no_sense(words: tuple[str, ...], told: str) -> None:
    done = CliRunner().invoke(app, ["registration", *words])
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())


def test_a_certificate_that_is_none(tmp_path: Path) -> None:
    for content in (None, "no certificate"):
        file = tmp_path / "odd.pem"
        if content is not None:
            file.write_text(content)
        with pytest.raises(NeedsAttention, match="certificate"):
            run(*SITE, "--certificate", str(file))
